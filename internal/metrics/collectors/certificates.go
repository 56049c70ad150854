package collectors

import (
	"crypto/x509"
	"encoding/pem"
	"os"

	"github.com/prometheus/client_golang/prometheus"
)

var expiry = prometheus.NewDesc("egret_certificate_expiry_timestamp_seconds",
	"Time until which the certificate in a file is valid, by what it is used for.", []string{"use"}, nil)

// NewCertificates returns the metric of the certificates that a program shows to others. paths has their PEM files by
// what they are used for. Files are read when somebody asks: a Secret may be exchanged.
func NewCertificates(paths map[string]string) prometheus.Collector {
	return NewGauges(func(tell Tell) { tellExpiry(paths, tell) }, expiry)
}

// tellExpiry tells nothing of a file that is not there or cannot be read: the log says what is wrong.
func tellExpiry(paths map[string]string, tell Tell) {
	for use, path := range paths {
		if leaf := readLeaf(path); leaf != nil {
			tell(expiry, float64(leaf.NotAfter.Unix()), use)
		}
	}
}

// readLeaf returns the first certificate of a file, or nil.
func readLeaf(path string) *x509.Certificate {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			leaf, _ := x509.ParseCertificate(block.Bytes)
			return leaf
		}
	}
	return nil
}
