package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Ask asks the agent that listens at socket. path is "plan" or "trace".
func Ask(ctx context.Context, socket, path string, form url.Values) (string, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/"+path+"?"+form.Encode(), nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", noAnswerError(socket, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read the agent's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(string(text)))
	}
	return string(text), nil
}

// noAnswerError says what to do when there is no answer.
func noAnswerError(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: only root may ask the agent: use sudo", socket)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the agent at %s takes too long: look at its log "+
			"(kubectl -n egret-system logs), and ask again", socket)
	}
	return fmt.Errorf("no agent answers at %s: see whether the pod egret-node of this node runs "+
		"(kubectl -n egret-system get pods -o wide); --socket is the agent's --agent-socket: %w", socket, err)
}
