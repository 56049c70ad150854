package metrics

import (
	"bytes"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
)

// page is /metrics in Prometheus' text format, or the error that kept it from being made.
type page struct {
	text []byte
	err  error
}

var format = expfmt.NewFormat(expfmt.TypeTextPlain)

func gatherPage(from prometheus.Gatherer) page {
	families, err := from.Gather()
	if err != nil {
		return page{err: err}
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return page{err: err}
		}
	}
	return page{text: text.Bytes()}
}

func answerPage(w http.ResponseWriter, r *http.Request, pages *cache[page]) {
	p, err := pages.latestAnswer(r.Context())
	if err == nil {
		err = p.err
	}
	if err != nil {
		http.Error(w, "metrics could not be gathered: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Content-Length", strconv.Itoa(len(p.text)))
	_, _ = w.Write(p.text) // the client has gone
}
