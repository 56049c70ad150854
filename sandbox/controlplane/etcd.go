package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// startEtcd runs etcd in this process on free loopback ports, with its data in the state folder, and returns when it
// answers. The caller closes it.
func startEtcd(ctx context.Context, c config) (clientURL string, etcd *embed.Etcd, err error) {
	client, err := freeURL()
	if err != nil {
		return "", nil, err
	}
	peer, err := freeURL()
	if err != nil {
		return "", nil, err
	}
	ec := embed.NewConfig()
	ec.Dir = filepath.Join(c.dir, "etcd")
	ec.LogLevel = "warn"
	ec.LogOutputs = []string{filepath.Join(c.dir, "etcd.log")}
	ec.ListenClientUrls, ec.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	ec.ListenPeerUrls, ec.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	ec.InitialCluster = ec.InitialClusterFromName(ec.Name)
	ec.UnsafeNoFsync = true // a sandbox may lose its last writes with the machine
	etcd, err = embed.StartEtcd(ec)
	if err != nil {
		return "", nil, fmt.Errorf("etcd: %w (see %s; removing %s starts an empty cluster)", err, ec.LogOutputs[0],
			ec.Dir)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return client.String(), etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	etcd.Close()
	return "", nil, fmt.Errorf("etcd: %w (see %s)", err, ec.LogOutputs[0])
}

func freeURL() (url.URL, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return url.URL{}, fmt.Errorf("find a port for etcd (is lo up?): %w", err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}, nil
}
