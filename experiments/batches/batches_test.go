// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
