package image

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Release is what a build says of itself.
type Release struct {
	Version, Revision string
	Time              time.Time // of the commit: the same commit makes the same bytes
}

const (
	project  = "https://github.com/egret-net/egret"
	sbomFile = docFolder + "/sbom.spdx.json"
	unknown  = "NOASSERTION"
)

// component is a package of an SBOM, by its package URL.
type component struct{ name, version, purl string }

// The parts of an SPDX 2.3 document that are used here.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string          `json:"SPDXID"`
		Name          string          `json:"name"`
		Version       string          `json:"versionInfo"`
		Location      string          `json:"downloadLocation"`
		FilesAnalyzed bool            `json:"filesAnalyzed"`
		Concluded     string          `json:"licenseConcluded"`
		Declared      string          `json:"licenseDeclared"`
		Copyright     string          `json:"copyrightText"`
		References    []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// encodeSBOM returns the document of an image that contains these components.
func encodeSBOM(r Release, components []component) (string, error) {
	const document, image = "SPDXRef-DOCUMENT", "SPDXRef-Image"
	d := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: document, Name: "egret-" + r.Version,
		Namespace: project + "/spdx/egret-" + r.Version,
		Creation:  spdxCreation{r.Time.UTC().Format(time.RFC3339), []string{"Tool: egret-prepare"}},
		Packages: []spdxPackage{{ID: image, Name: "egret", Version: r.Version, Location: unknown, Concluded: unknown,
			Declared: "Apache-2.0", Copyright: unknown}},
		Relationships: []spdxRelationship{{document, "DESCRIBES", image}},
	}
	for i, c := range components {
		id := fmt.Sprint("SPDXRef-Package-", i+1)
		d.Packages = append(d.Packages, spdxPackage{ID: id, Name: c.name, Version: c.version, Location: unknown,
			Concluded: unknown, Declared: unknown, Copyright: unknown,
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", c.purl}}})
		d.Relationships = append(d.Relationships, spdxRelationship{image, "CONTAINS", id})
	}
	text, err := json.MarshalIndent(d, "", " ")
	return string(text) + "\n", err
}

// escapeVersion writes a version as package URLs have it.
var escapeVersion = strings.NewReplacer("+", "%2B", ":", "%3A").Replace

func debianComponents(packages []debianPackage) (all []component) {
	for _, p := range packages {
		all = append(all, component{p.name, p.version, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s",
			escapeVersion(p.name), escapeVersion(p.version), p.architecture)})
	}
	return all
}

// goComponents returns the modules that programs are built from, as the Go command has recorded in them, and Go's
// standard library.
func goComponents(programs []string) ([]component, error) {
	found := map[string]component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("read the modules of %s: %w", program, err)
		}
		for _, c := range recordedComponents(info) {
			found[c.name+"@"+c.version] = c
		}
	}
	var all []component
	for _, key := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[key])
	}
	return all, nil
}

// recordedComponents returns the modules of one program. A module that a folder replaces is a part of Egret's source,
// as api is, and no component.
func recordedComponents(info *buildinfo.BuildInfo) []component {
	all := []component{goComponent("stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !strings.HasPrefix(m.Path, ".") {
			all = append(all, goComponent(m.Path, m.Version))
		}
	}
	return all
}

func goComponent(name, version string) component {
	return component{name, version, "pkg:golang/" + strings.ToLower(name) + "@" + escapeVersion(version)}
}
