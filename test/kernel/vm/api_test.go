package vm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// object is one of the API's, as JSON.
type object = map[string]any

// api is as much of an API server as an agent needs: get, list, watch, create and merge patch of what is recorded in
// it. It speaks JSON.
type api struct {
	mu      sync.Mutex
	version int
	objects map[string]object // by path: /api/v1/namespaces/NAMESPACE/pods/NAME
	watches map[chan event]string
}

type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

func newAPI() *api {
	return &api{objects: map[string]object{}, watches: map[chan event]string{}}
}

// put records an object at its path, in place of what is there, and tells those who watch its kind.
func (a *api) put(t *testing.T, path string, typed any) {
	t.Helper()
	content, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var o object
	if err := json.Unmarshal(content, &o); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store(path, o)
}

func (a *api) store(path string, o object) {
	kind := "MODIFIED"
	if a.objects[path] == nil {
		kind = "ADDED"
	}
	a.version++
	meta := child(o, "metadata")
	meta["resourceVersion"] = strconv.Itoa(a.version)
	a.objects[path] = o
	for w, of := range a.watches {
		if collection(path) == of {
			w <- event{kind, copied(o)}
		}
	}
}

// collection is what a list of an object's kind is asked for by: its path without namespace and name.
func collection(path string) string {
	parts := strings.Split(path, "/")
	parts = parts[:len(parts)-1]
	if n := len(parts); n > 2 && parts[n-3] == "namespaces" {
		parts = append(parts[:n-3], parts[n-1])
	}
	return strings.Join(parts, "/")
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/status")
	switch {
	case r.URL.Query().Get("sendInitialEvents") == "true": // who asks lists instead, as with servers before 1.27
		refuse(w, http.StatusUnprocessableEntity, "Invalid")
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		a.watch(w, r, path)
	case r.Method == http.MethodGet:
		a.get(w, path)
	case r.Method == http.MethodPost || r.Method == http.MethodPatch:
		a.write(w, r, path)
	default:
		refuse(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func (a *api) get(w http.ResponseWriter, path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.objects[path]; o != nil {
		answer(w, http.StatusOK, o)
		return
	}
	_, within, _ := strings.Cut(path, "/namespaces/")
	if isOne := within != "" && strings.Count(within, "/") != 1; isOne {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	items := []object{}
	for at, o := range a.objects {
		if collection(at) == path || at[:strings.LastIndex(at, "/")] == path {
			items = append(items, o)
		}
	}
	kind, version := listKind(path)
	answer(w, http.StatusOK, object{"kind": kind, "apiVersion": version,
		"metadata": object{"resourceVersion": strconv.Itoa(a.version)}, "items": items})
}

// recorded is the object at a path, as text.
func (a *api) recorded(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, _ := json.Marshal(a.objects[path]) // it came from JSON
	return string(text)
}

// listKind is the type of a list, of one namespace or of all: the decoder of client-go goes by it.
func listKind(path string) (kind, version string) {
	parts := strings.Split(strings.Trim(collection(path+"/"), "/"), "/")
	kinds := map[string]string{
		"nodes": "NodeList", "namespaces": "NamespaceList", "pods": "PodList", "services": "ServiceList",
		"endpointslices": "EndpointSliceList", "egressips": "EgressIPList", "egressiptraffics": "EgressIPTrafficList",
		"egressservices":                 "EgressServiceList",
		"egressnodes":                    "EgressNodeList",
		"network-attachment-definitions": "NetworkAttachmentDefinitionList",
	}
	return kinds[parts[len(parts)-1]], strings.Join(parts[1:len(parts)-1], "/")
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, path string) {
	events := make(chan event, 1000)
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	a.mu.Lock()
	for at, o := range a.objects { // what came between the list and this
		if v, _ := strconv.Atoi(child(o, "metadata")["resourceVersion"].(string)); v > since && collection(at) == path {
			events <- event{"MODIFIED", copied(o)}
		}
	}
	a.watches[events] = path
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.watches, events)
		a.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	for flush := w.(http.Flusher); ; {
		flush.Flush()
		select {
		case e := <-events:
			if json.NewEncoder(w).Encode(e) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// write creates an object, or merges a patch (RFC 7386) into one. What is not JSON (Events, in protobuf) is refused.
func (a *api) write(w http.ResponseWriter, r *http.Request, path string) {
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Method == http.MethodPost {
		path = fmt.Sprint(path, "/", child(body, "metadata")["name"])
		a.store(path, body)
		answer(w, http.StatusCreated, body)
		return
	}
	o := a.objects[path]
	if o == nil {
		refuse(w, http.StatusNotFound, "NotFound")
		return
	}
	o = copied(o)
	delete(child(body, "metadata"), "resourceVersion")
	merge(o, body)
	a.store(path, o)
	answer(w, http.StatusOK, o)
}

func merge(into, patch object) {
	for k, v := range patch {
		sub, isObject := v.(object)
		switch {
		case v == nil:
			delete(into, k)
		case isObject:
			merge(child(into, k), sub)
		default:
			into[k] = v
		}
	}
}

// child is the object in a field, made if it is not there.
func child(o object, field string) object {
	if c, ok := o[field].(object); ok {
		return c
	}
	c := object{}
	o[field] = c
	return c
}

func copied(o object) object {
	content, _ := json.Marshal(o) // it came from JSON
	var c object
	_ = json.Unmarshal(content, &c)
	return c
}

func answer(w http.ResponseWriter, code int, o object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o) // who asked has gone, if it fails
}

func refuse(w http.ResponseWriter, code int, reason string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure",
		"reason": reason, "code": code})
}
