// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/page"
)

// simulated is a server of many CPUs and of so many events a second. It counts
// what it has sent.
func simulated(t *testing.T, cpus, perSecond int) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", page.Serve)
	answer := func(path string, v any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v) })
	}
	type object = map[string]any
	var all []object
	roles := []string{"busy", "busy", "idle", "isolated"}
	for i := range cpus {
		all = append(all, object{
			"id": i, "role": roles[i%4], "online": i != 5, "taken": map[string]int{"sync": 504 + i%3, "static_key": i % 7},
			"rounds_sent": 504 / (i + 1), "traps": 17 * (i % 5), "calls": 1000,
		})
	}
	now := time.Now()
	var updates []object
	for i := range 12 {
		updates = append(updates, object{"id": 640 - i, "client": fmt.Sprintf("client-%d", i), "ops": "function",
			"enable": i%3 != 0, "records": 42757 / (i + 1), "state": "live", "batch": 20, "submitted": now, "ended": now})
	}
	updates[1]["state"], updates[1]["error"] = "failed", "store into record 17: injected"
	updates[2]["state"], updates[2]["client"], updates[2]["ops"] = "queued", "tracer-of-the-database-1", "kretprobe_multi"
	updates[3]["state"], updates[3]["fits"], updates[3]["phase"] = "held", now.Add(25*time.Hour), "isolated=500/1h0m0s, of which it takes 504"
	answer("/v1/status", object{
		"stats": object{"requests": 640, "merged": 640, "batches": 20, "updates": 20, "failed": 1, "changes": 42757,
			"rounds": 504, "ipis": 504 * (cpus - 1), "violations": 0, "queued": 0, "enabled": 42757, "ready": true,
			"journal": 49152},
		"cpus": all, "updates": updates, "batches": []object{{"id": 18, "requests": 1}, {"id": 19, "requests": 27},
			{"id": 20, "requests": 64}},
	})
	answer("/v1/clients", object{"wants": []object{{"client": "tracer-of-the-database-1", "ops": "kretprobe_multi", "records": 42757,
		"etag": `"a"`, "lease": 30, "until": now.Add(time.Minute)}, {"client": "ftrace", "ops": "function", "records": 7, "etag": `"b"`}}})
	answer("/v1/experiments",
		object{"experiments": []object{{"name": "ipi-burst", "question": "How many?", "short": "bursts"}}})
	answer("/v1/compare", object{"records": 42757, "costs": []object{
		{"buffer": "256", "patches": 42757, "flushes": 168, "rounds": 504, "ipis": 504 * (cpus - 1), "ipis_per_cpu": 504,
			"buffer_bytes": 4096},
		{"buffer": "dynamic", "patches": 42757, "flushes": 1, "rounds": 3, "ipis": 3 * (cpus - 1), "ipis_per_cpu": 3,
			"buffer_bytes": 684112},
	}})
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { pour(w, r, cpus, perSecond) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

// pour sends events until the reader goes: of a hundred, 70 interrupts, 19 traps,
// seven steps of the patcher, three rounds and one update.
func pour(w http.ResponseWriter, r *http.Request, cpus, perSecond int) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	out, begun, id := json.NewEncoder(w), time.Now(), 0
	for {
		select {
		case <-r.Context().Done():
			return
		case now := <-ticks.C:
			for due := int(now.Sub(begun).Seconds() * float64(perSecond)); id < due; {
				id++
				e := event(id, cpus, int64(id)*int64(time.Second)/int64(perSecond))
				fmt.Fprintf(w, "id: %d\nevent: %s\ndata: ", id, e["kind"])
				_ = out.Encode(e) // ends the line
				fmt.Fprintln(w)
			}
			w.(http.Flusher).Flush()
		}
	}
}

func event(id, cpus int, at int64) map[string]any {
	e := map[string]any{"id": id, "time": time.Now(), "from_ns": at, "until_ns": at + 20_000, "cpu": (id * id / 7) % cpus}
	patcher := id / 5000 % cpus
	switch n := id % 100; {
	case n == 0:
		now := time.Now()
		e["kind"], e["update"] = "update", map[string]any{
			"id": id / 100, "client": fmt.Sprintf("client-%d", id/100%11), "ops": "function", "enable": true, "records": 350,
			"state": "live", "batch": 1 + id/800, "submitted": now, "ended": now,
		}
	case n < 4:
		e["kind"], e["name"], e["count"], e["cpu"], e["until_ns"] = "round", "sync", cpus-1, patcher, at
	case n < 11:
		e["kind"], e["name"], e["cpu"] = "step", fmt.Sprintf("Sync %d", n%3+1), patcher
	case n < 30:
		e["kind"], e["hit"] = "trap", true
	default:
		e["kind"], e["name"] = "interrupt", "sync"
	}
	return e
}
