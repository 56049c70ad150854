package cniserver

import (
	"maps"
	"slices"
)

// Pools are the networks that there are pools of.
func (s *Server) Pools() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.pools))
}

// AddressesInUse is how many containers hold addresses, in how many networks.
func (s *Server) AddressesInUse() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pool := range s.pools {
		for _, ips := range pool.Owned() {
			n += min(len(ips), 1)
		}
	}
	return n
}
