package cniserver

import (
	"context"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/node/ipam"
)

// allocateAddresses gives a container its addresses.
func (s *Server) allocateAddresses(ctx context.Context, containerID string) ([]netip.Addr, error) {
	said, err := s.saidAddresses(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refreshPool(ctx, said); err != nil {
		return nil, err
	}
	return s.pool.Allocate(containerID)
}

// saidAddresses asks the loop, without the lock, which addresses a new pool should give last. It asks nothing where no
// new pool is needed.
func (s *Server) saidAddresses(ctx context.Context) ([]netip.Addr, error) {
	s.mu.Lock()
	current := s.isPoolCurrent()
	s.mu.Unlock()
	if current {
		return nil, nil
	}
	return s.node.SaidAddresses(ctx)
}

// isPoolCurrent says whether the pool is of the node's subnets.
func (s *Server) isPoolCurrent() bool {
	return s.pool != nil && slices.Equal(s.maskedSubnets(), s.pool.Subnets())
}

func (s *Server) maskedSubnets() []netip.Prefix {
	subnets := slices.Clone(s.node.Subnets())
	for i, p := range subnets {
		subnets[i] = p.Masked()
	}
	return subnets
}

// releaseAddresses takes a container's addresses back: nothing else of it is left.
func (s *Server) releaseAddresses(containerID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.half, containerID)
	if s.pool != nil {
		s.pool.Release(containerID)
	}
}

// holdsAddresses says whether a container has addresses.
func (s *Server) holdsAddresses(containerID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pool != nil && len(s.pool.Owned()[containerID]) > 0
}

// refreshPool makes the pool of the node's subnets: at first from the OVS ports, afterwards, when the subnets changed,
// from the former pool, which also knows what is being attached at the moment.
func (s *Server) refreshPool(ctx context.Context, said []netip.Addr) error {
	if s.isPoolCurrent() {
		return nil
	}
	inUse := map[string][]netip.Addr{}
	if s.pool != nil {
		inUse = s.pool.Owned()
	} else {
		ports, err := s.attachments.PodPorts(ctx)
		if err != nil {
			return err
		}
		for _, p := range ports {
			inUse[p.SandboxID] = append(inUse[p.SandboxID], p.IPs...)
		}
	}
	pool, err := ipam.New(s.maskedSubnets(), inUse, said)
	if err != nil {
		return err
	}
	s.pool = pool
	return nil
}
