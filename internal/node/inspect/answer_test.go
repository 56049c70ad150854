package inspect

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestGivenUp: the loop has no question of those who have given up while others had their turn.
func TestGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ask := answerInTurn(make(chan struct{}, 1), func(context.Context, *http.Request) (string, error) {
		t.Error("it is asked")
		return "", nil
	})
	for range 100 {
		ask(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/plan", nil))
	}
}
