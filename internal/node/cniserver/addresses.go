package cniserver

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/egret-net/egret/internal/node/ipam"
	"github.com/egret-net/egret/internal/ref"
)

// allocateAddresses gives a container its addresses of the node's subnets of a network.
func (s *Server) allocateAddresses(ctx context.Context, network string, subnets []netip.Prefix,
	containerID string) ([]netip.Addr, error) {
	subnets = maskedSubnets(subnets)
	said, err := s.prepareNewPool(ctx, network, subnets)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refreshPool(ctx, network, subnets, said); err != nil {
		return nil, err
	}
	return s.pools[network].Allocate(containerID)
}

// prepareNewPool asks the loop, without the lock, which addresses a new pool should give last, and drops the pools of
// networks that are gone. It asks nothing where no new pool is needed.
func (s *Server) prepareNewPool(ctx context.Context, network string, subnets []netip.Prefix) ([]netip.Addr, error) {
	s.mu.Lock()
	current := s.isPoolCurrent(network, subnets)
	s.mu.Unlock()
	if current {
		return nil, nil
	}
	here, err := s.node.FurtherNetworks(ctx)
	if err != nil {
		return nil, err
	}
	s.dropPools(append(here, ref.DefaultNetwork))
	return s.node.SaidAddresses(ctx, network)
}

// dropPools drops the pools of all but some networks, where no container has an address.
func (s *Server) dropPools(but []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.pools, func(network string, pool *ipam.Pool) bool {
		return !slices.Contains(but, network) && len(pool.Owned()) == 0
	})
}

// isPoolCurrent says whether the pool of a network is of these subnets.
func (s *Server) isPoolCurrent(network string, subnets []netip.Prefix) bool {
	pool := s.pools[network]
	return pool != nil && slices.Equal(subnets, pool.Subnets())
}

func maskedSubnets(subnets []netip.Prefix) []netip.Prefix {
	subnets = slices.Clone(subnets)
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
	for _, pool := range s.pools {
		pool.Release(containerID)
	}
}

// holdsAddresses says whether a container has addresses.
func (s *Server) holdsAddresses(containerID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pool := range s.pools {
		if len(pool.Owned()[containerID]) > 0 {
			return true
		}
	}
	return false
}

// refreshPool makes the pool of the node's subnets of a network: at first from the OVS ports, afterwards, when the
// subnets changed, from the former pool, which also knows what is being attached at the moment.
func (s *Server) refreshPool(ctx context.Context, network string, subnets []netip.Prefix, said []netip.Addr) error {
	if s.isPoolCurrent(network, subnets) {
		return nil
	}
	inUse := map[string][]netip.Addr{}
	if former := s.pools[network]; former != nil {
		inUse = former.Owned()
	} else {
		ports, err := s.attachments.PodPorts(ctx)
		if err != nil {
			return err
		}
		for _, p := range ports {
			inUse[p.SandboxID] = append(inUse[p.SandboxID], p.ipsIn(network)...)
		}
	}
	pool, err := ipam.New(subnets, inUse, said)
	if err != nil {
		return err
	}
	s.pools[network] = pool
	return nil
}

// ipsIn are a pod's addresses in a network.
func (p PodPort) ipsIn(network string) []netip.Addr {
	switch {
	case network == ref.DefaultNetwork:
		return p.IPs
	case p.Primary != nil && p.Primary.Network == network:
		return p.Primary.IPs
	}
	return nil
}
