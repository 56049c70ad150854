package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestModulesLoadAfterWhatTheyNeed(t *testing.T) {
	k := kernel{version: "x", modules: t.TempDir()}
	dep := "kernel/fs/9p/9p.ko: kernel/fs/netfs/netfs.ko kernel/net/9p/9pnet.ko\n" +
		"kernel/net/9p/9pnet-virtio.ko: kernel/net/9p/9pnet.ko kernel/drivers/virtio/virtio.ko\n"
	if err := os.WriteFile(filepath.Join(k.modules, "modules.dep"), []byte(dep), 0o644); err != nil {
		t.Fatal(err)
	}
	have, err := loadOrder(k, "9pnet_virtio", "9p")
	want := []string{"kernel/drivers/virtio/virtio.ko", "kernel/net/9p/9pnet.ko", "kernel/net/9p/9pnet-virtio.ko",
		"kernel/fs/netfs/netfs.ko", "kernel/fs/9p/9p.ko"}
	if err != nil || !slices.Equal(have, want) {
		t.Errorf("have %v, %v, want %v", have, err, want)
	}
	if _, err := loadOrder(k, "openvswitch"); err == nil {
		t.Error("a module that is not there is no error")
	}
}
