package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/egret-net/egret/internal/world"
)

// ObserveList takes in a list of the metadata of all objects of a kind in a namespace, "" for all, that the API server
// gave in answer to a request: which objects are gone. It reports whether one of the listed objects is newer than what
// was taken in of it, so that it has yet to be observed. It fails, and takes in nothing, if the list is of another
// history than the one that was followed. The list is a consistent read with the label selector of the kind's watch.
//
// Versions are compared with those of the same resource only; Kubernetes promises no order across resources (KEP-5504).
func (s *Source) ObserveList(
	k Kind, namespace string, list *metav1.PartialObjectMetadataList,
) (outdated bool, err error) {
	listed := map[string]bool{}
	for _, m := range list.Items {
		key := keyOf(m.Namespace, m.Name)
		listed[key] = true
		t := s.tableFor(k.pluralName(), key)
		if t == nil {
			continue
		}
		if t.isContradictedBy(key, m.ResourceVersion, list.ResourceVersion) {
			return false, fmt.Errorf("etcd was restored from a backup: the API server has version %s of %s %s, which was"+
				" past", m.ResourceVersion, k.pluralName(), key)
		}
		outdated = outdated || t.isOutdated(key, m.ResourceVersion)
	}
	for i, x := range s.kinds {
		if x.pluralName() == k.pluralName() {
			s.tables[i].removeUnlisted(namespace, list.ResourceVersion, listed)
		}
	}
	return outdated, nil
}

// isContradictedBy reports whether a list has an object at a version that had ended by the list's own version, in the
// history that was followed.
func (t *table) isContradictedBy(key, version, list string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, is := t.known[key]; is {
		return Older(version, known) && !isNewer(known, list)
	}
	gone, is := t.gone[key]
	ended := t.latest != "" && !isNewer(version, t.latest) && !isNewer(t.latest, list)
	return ended && (!is || !isNewer(gone.version, list))
}

// tombstone stands for an object that a list of a version lacks, until the watch has got as far. Earlier versions of
// the object, which the watch can still bring, are past.
type tombstone struct {
	version string
	named   bool // the watch has brought an end, which has a version of its own
}

// removeUnlisted removes the objects of a namespace, "" for all, that a list lacks and that are not newer than it. The
// watch has brought the ends of all that lists of its own version or older lack.
func (t *table) removeUnlisted(namespace, version string, listed map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !Older(t.latest, version) {
		return
	}
	var changes []Change
	for key, known := range t.known {
		in, _ := splitKey(key)
		if listed[key] || isNewer(known, version) || namespace != "" && in != namespace {
			continue
		}
		delete(t.known, key)
		t.gone[key] = tombstone{version: version}
		changes = append(changes, t.remove(key))
	}
	if len(changes) > 0 {
		t.send(func(w *world.World) {
			for _, c := range changes {
				c(w)
			}
		})
	}
}

// isPast reports whether a version of an object is older than a list that lacked the object.
func (t *table) isPast(key, version string) bool {
	gone, is := t.gone[key]
	return is && !isNewer(version, gone.version)
}

// forgetPast forgets the tombstones that the watch has passed.
func (t *table) forgetPast() {
	for key, gone := range t.gone {
		if !Older(t.latest, gone.version) {
			delete(t.gone, key)
		}
	}
}

// unnamedEnd returns the latest version of lists that lacked objects whose ends the watch has yet to bring, or "".
func (t *table) unnamedEnd() (version string) {
	for _, gone := range t.gone {
		if !gone.named && (version == "" || isNewer(gone.version, version)) {
			version = gone.version
		}
	}
	return version
}
