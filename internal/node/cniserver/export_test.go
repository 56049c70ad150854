package cniserver

// AddressesInUse is how many containers hold addresses.
func (s *Server) AddressesInUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pool == nil {
		return 0
	}
	return len(s.pool.Owned())
}
