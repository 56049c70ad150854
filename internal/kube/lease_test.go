package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// leaseServer has one Lease, or none if its version is 0.
type leaseServer struct{ version int }

func (s *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var sent struct {
		Metadata struct{ ResourceVersion string }
		Spec     *struct{}
	}
	_ = json.NewDecoder(r.Body).Decode(&sent)
	fails := func(code int, reason string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	has := fmt.Sprint(s.version)
	switch {
	case r.Method == http.MethodPatch && s.version == 0:
		fails(http.StatusNotFound, "NotFound")
		return
	case r.Method == http.MethodPatch && sent.Metadata.ResourceVersion != "" && sent.Metadata.ResourceVersion != has:
		fails(http.StatusConflict, "Conflict")
		return
	}
	if sent.Spec != nil || r.Method == http.MethodPost {
		s.version++
	}
	_, _ = io.WriteString(w, strings.ReplaceAll(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",
		"metadata":{"name":"n1","resourceVersion":"N"}}`, "N", fmt.Sprint(s.version)))
}

// TestRenewAgentLease: a renewal tells an agent whether the Lease is as it left it.
func TestRenewAgentLease(t *testing.T) {
	s := &leaseServer{}
	server := httptest.NewServer(s)
	defer server.Close()
	clients, err := NewClients(&rest.Config{Host: server.URL, QPS: -1})
	must(t, err)
	renew := func(last string) (string, error) {
		return clients.RenewAgentLease(t.Context(), "n1", "uid", time.Minute, time.Now(), last)
	}
	for last, want := range []string{"1", "2", "3"} {
		text := ""
		if last > 0 {
			text = fmt.Sprint(last)
		}
		if have, err := renew(text); err != nil || have != want {
			t.Errorf("after %q: %q, %v; want %q", text, have, err, want)
		}
	}
	s.version = 7 // by renewals whose answers were lost
	if have, err := renew("3"); err != nil || have != "8" {
		t.Errorf("after lost answers: %q, %v", have, err)
	}
	for _, is := range []int{2, 0} { // of a backup, and of one from before the first
		s.version = is
		if _, err := renew("3"); !errors.Is(err, ErrLeaseWentBack) {
			t.Errorf("with version %d: %v", is, err)
		}
		if have, err := renew(""); err != nil || have != fmt.Sprint(is+1) {
			t.Errorf("anew: %q, %v", have, err)
		}
	}
}
