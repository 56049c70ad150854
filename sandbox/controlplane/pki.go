package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	certLifetime = 365 * 24 * time.Hour
	renewBefore  = 30 * 24 * time.Hour
)

// authority is the cluster's certificate authority.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// subject says whom a certificate is for. Without dns and ips it is a client's.
type subject struct {
	commonName    string
	organizations []string
	dns           []string
	ips           []net.IP
}

// loadAuthority reads the CA from dir.
func loadAuthority(dir string) (*authority, error) {
	cert, err := readCertificate(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, nil
}

// ensureAuthority reads the CA from dir, or makes one there.
func ensureAuthority(dir string) (*authority, error) {
	a, err := loadAuthority(dir)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return a, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "egret-sandbox"}, caLifetime)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign the CA certificate: %w", err)
	}
	if err := writePair(filepath.Join(dir, "ca"), der, key); err != nil {
		return nil, err
	}
	return loadAuthority(dir)
}

// ensure keeps prefix.crt if it is a valid certificate of this CA for s, and issues it otherwise.
func (a *authority) ensure(prefix string, s subject) error {
	cert, err := readCertificate(prefix + ".crt")
	if err == nil && a.signed(cert) && s.matches(cert) && time.Until(cert.NotAfter) > renewBefore {
		return nil
	}
	return a.issue(prefix, s)
}

// issue writes prefix.crt and prefix.key.
func (a *authority) issue(prefix string, s subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template, err := newTemplate(pkix.Name{CommonName: s.commonName, Organization: s.organizations}, certLifetime)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.dns)+len(s.ips) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		template.DNSNames, template.IPAddresses = s.dns, s.ips
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("sign a certificate for %s: %w", s.commonName, err)
	}
	return writePair(prefix, der, key)
}

func (a *authority) signed(cert *x509.Certificate) bool {
	return cert.CheckSignatureFrom(a.cert) == nil
}

func (s subject) matches(cert *x509.Certificate) bool {
	return cert.Subject.CommonName == s.commonName &&
		slices.Equal(cert.Subject.Organization, s.organizations) &&
		slices.Equal(cert.DNSNames, s.dns) &&
		slices.EqualFunc(cert.IPAddresses, s.ips, net.IP.Equal)
}

// newTemplate is valid from an hour ago, for machines whose clocks differ a little.
func newTemplate(name pkix.Name, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: name, NotBefore: now.Add(-time.Hour),
		NotAfter: now.Add(lifetime)}, nil
}

// ensureServiceAccountKey makes the RSA key that signs service account tokens, once.
func ensureServiceAccountKey(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	return writeKey(file, key)
}

func writePair(prefix string, der []byte, key crypto.Signer) error {
	// Key first: a certificate without its key would count as present at the next start.
	if err := writeKey(prefix+".key", key); err != nil {
		return err
	}
	return writeFile(prefix+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// writeFile replaces file in one step.
func writeFile(file string, content []byte, mode os.FileMode) error {
	if err := os.WriteFile(file+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func readCertificate(file string) (*x509.Certificate, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (remove it to have a new one made)", file, err)
	}
	return cert, nil
}

func readKey(file string) (crypto.Signer, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (remove it to have a new one made)", file, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s: a %T cannot sign (remove it to have a new one made)", file, key)
	}
	return signer, nil
}

func readPEM(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block (remove it to have a new one made)", file)
	}
	return block.Bytes, nil
}
