package image

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"

func pauseImage(binDir string) Image {
	return Image{
		Name:       Pause().Name,
		Entrypoint: []string{"/pause"},
		Files:      []File{{Path: "/pause", Mode: 0o755, Source: filepath.Join(binDir, "pause")}},
	}
}

// staticImage is one program, at path, with what Pods mount over: /etc for a Corefile and resolv.conf, /tmp.
func staticImage(ref Ref, path, source string) Image {
	return Image{
		Name:       ref.Name,
		Entrypoint: []string{path},
		Env:        []string{searchPath},
		Files:      append(skeletonFiles(), File{Path: path, Mode: 0o755, Source: source}),
	}
}

// AgnhostImage is the Kubernetes test server in a small Debian, with the programs that tests and people run inside a
// Pod; and more files.
func AgnhostImage(rootDir, binDir string, more ...File) (Image, error) {
	c, err := newClosure(rootDir)
	if err == nil {
		err = c.addAll(toolPaths())
	}
	if err != nil {
		return Image{}, err
	}
	files := append(skeletonFiles(), File{Path: "/agnhost", Mode: 0o755, Source: filepath.Join(binDir, "agnhost")})
	return Image{
		Name:       Agnhost().Name,
		Entrypoint: []string{"/agnhost"},
		Cmd:        []string{"pause"},
		Env:        []string{searchPath},
		Files:      slices.Concat(files, c.listFiles(), more),
	}, nil
}

// skeletonFiles is what a program expects of any Linux system: users, name lookup order, a place for temporary files.
// glibc 2.34 and later have the files and dns lookups built in, so no libnss is needed.
func skeletonFiles() []File {
	return []File{
		{Path: "/etc/passwd", Mode: 0o644,
			Content: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"},
		{Path: "/etc/group", Mode: 0o644, Content: "root:x:0:\nnogroup:x:65534:\n"},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: "passwd: files\ngroup: files\nhosts: files dns\n"},
		{Path: "/root", Mode: 0o700},
		{Path: "/run", Mode: 0o755},
		{Path: "/tmp", Mode: 0o777 | fs.ModeSticky},
	}
}

// toolPaths lists programs of the root folder by path.
func toolPaths() []string {
	const bin = `sh dash bash curl nc dig host nslookup getent ss ping tcpdump hostname ps pgrep
		arch base64 basename cat chmod chown cp cut date dd df dirname du echo env expr false head id kill ln ls md5sum
		mkdir mkfifo mktemp mv nproc od paste printenv printf pwd readlink realpath rm rmdir seq sha256sum sleep sort
		split stat stdbuf stty sync tail tee test timeout touch tr true truncate tty uname uniq wc whoami yes
		awk find grep mawk sed xargs`
	const sbin = "ip bridge ethtool sysctl"
	var paths []string
	for _, name := range strings.Fields(bin) {
		paths = append(paths, "/usr/bin/"+name)
	}
	for _, name := range strings.Fields(sbin) {
		paths = append(paths, "/usr/sbin/"+name)
	}
	return paths
}
