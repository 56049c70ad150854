package cniserver

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
