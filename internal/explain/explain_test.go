package explain_test

import (
	"testing"

	"github.com/egret-net/egret/internal/feature/featuretest"
)

func TestScripts(t *testing.T) { featuretest.Run(t) }
