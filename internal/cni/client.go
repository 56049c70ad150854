package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/containernetworking/cni/pkg/types"
)

// Path is the one URL path that the agent serves.
const Path = "/cni"

// callTimeout bounds one call; the kubelet gives up on a sandbox after two minutes.
const callTimeout = 100 * time.Second

// Response is the agent's answer, always with HTTP status 200: a result (ADD), an error, or neither.
type Response struct {
	Result *current.Result `json:"result,omitempty"`
	Error  *types.Error    `json:"error,omitempty"`
}

// Call sends a request to the agent at a unix socket. The result is nil for all commands but ADD. The error is a
// *types.Error: the agent's own, or code 11 (50 for STATUS) when the agent does not answer.
func Call(ctx context.Context, socket string, r *Request) (*current.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := postRequest(ctx, socket, r)
	if err != nil {
		return nil, unreachableError(socket, r.Command, err)
	}
	if response.Error != nil {
		return nil, response.Error
	}
	return response.Result, nil
}

func postRequest(ctx context.Context, socket string, r *Request) (*Response, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://egret-node"+Path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the agent answered %s: are plugin and agent of the same version?", answer.Status)
	}
	response := &Response{}
	if err := json.NewDecoder(answer.Body).Decode(response); err != nil {
		return nil, fmt.Errorf("read the agent's answer: %w", err)
	}
	return response, nil
}

func unreachableError(socket, command string, err error) error {
	code := types.ErrTryAgainLater
	if command == Status {
		code = types.ErrPluginNotAvailable
	}
	return types.NewError(code,
		fmt.Sprintf("no answer from Egret's agent at %s: look whether the egret-node pod of this node is running, "+
			"and at its log; the runtime will try again", socket), err.Error())
}
