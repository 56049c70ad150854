package manifests

import (
	"encoding/json"
	"fmt"
	"strings"
)

// logged: programs log as the ConfigMap asks, and a signal turns messages for debugging on.
func (l *lab) logged() {
	l.t.Helper()
	for app, container := range map[string]string{"egret-node": "agent", "egret-controller": "controller"} {
		pod := l.kubectl("-n", "egret-system", "get", "pods", "-l", "app="+app, "-o",
			"jsonpath={.items[0].metadata.name}")
		l.kubectl("-n", "egret-system", "exec", pod, "-c", container, "--", "sh", "-c", "kill -USR1 1")
		l.eventually(pod+" turns messages for debugging on", func() error {
			log := l.kubectl("-n", "egret-system", "logs", pod, "-c", container)
			for line := range strings.Lines(log) {
				if !json.Valid([]byte(line)) {
					return fmt.Errorf("a line of its log is not JSON: %s", line)
				}
			}
			if !strings.Contains(log, `"to":"DEBUG"`) {
				return fmt.Errorf("its log ends with %q", log[max(0, len(log)-200):])
			}
			return nil
		})
	}
}
