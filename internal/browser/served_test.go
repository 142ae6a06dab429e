// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/sync/errgroup"
)

// served is a real server, started as people start it, and its address.
func served(t *testing.T, more ...string) string {
	t.Helper()
	Need(t)
	program := filepath.Join(t.TempDir(), "textpoke")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/textpoke").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir()},
		more...)...)
	server.Stderr = t.Output()
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		if err := server.Wait(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("serve does not say where it listens: %v", err)
	}
	address = strings.TrimSpace(address)
	for range 300 {
		if reply, err := http.Get(address + "/readyz"); err == nil {
			_ = reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return address
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("serve is not ready after 15 s")
	return ""
}

// enabled asks the server itself how many of the records that a filter chooses, of
// at most a thousand, are enabled, and how many there are.
func enabled(t *testing.T, server, filter string) (on, all int) {
	t.Helper()
	reply, err := http.Get(server + "/v1/records?limit=1000&filter=" + filter)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var page struct{ Records []struct{ Enabled bool } }
	if err := json.NewDecoder(reply.Body).Decode(&page); err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Records {
		if r.Enabled {
			on++
		}
	}
	return on, len(page.Records)
}

// together submits the updates of so many clients at once.
func together(t *testing.T, server string, clients int) {
	t.Helper()
	var group errgroup.Group
	for i := range clients {
		group.Go(func() error {
			body := fmt.Sprintf(`{"client": "client-%d", "filter": ["kmem*"], "enable": true, "wait": true}`, i)
			reply, err := http.Post(server+"/v1/updates", "application/json", strings.NewReader(body))
			if err != nil {
				return err
			}
			defer reply.Body.Close()
			if reply.StatusCode != http.StatusOK && reply.StatusCode != http.StatusAccepted {
				return errors.New(reply.Status)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// watchFigures notes whenever what the page shows of a server that has had fewer than
// twenty updates does not add up.
func watchFigures(tab *Tab) {
	Ask[bool](tab, `(() => {
		globalThis.disagreements = [];
		globalThis.looked = 0;
		const figure = name => +[...$("figures").children].find(f => f.firstChild.textContent === name).lastChild.textContent.replaceAll(",", "");
		new MutationObserver(() => {
			looked++;
			const rows = [...$("updates").tBodies[0].rows], ended = rows.filter(row => row.cells[4].textContent === "live").length;
			const newest = Math.max(0, ...rows.map(row => +row.cells[5].textContent));
			if (figure("answered") !== ended) disagreements.push("answered " + figure("answered") + ", in the list " + ended);
			if (figure("answered") + figure("waiting") !== rows.length) disagreements.push("waiting " + figure("waiting") + ", in the list " + (rows.length - ended));
			if (figure("batches") !== newest) disagreements.push("batches " + figure("batches") + ", in the list " + newest);
			if (figure("batches") !== $("bars").children.length) disagreements.push("batches " + figure("batches") + ", bars " + $("bars").children.length);
			const sent = [...$("interrupts").tBodies[0].rows].reduce((n, row) => n + +row.cells[row.cells.length - 2].textContent, 0);
			if (figure("rounds") !== sent) disagreements.push("rounds " + figure("rounds") + ", of the CPUs " + sent);
		}).observe($("figures"), {childList: true});
		return true;
	})()`)
}

// TestServed drives the page of a real server with the keyboard: an update is seen
// live, an experiment's plot is seen, and what the page says is so. What the server
// refuses is said where it is wrong.
func TestServed(t *testing.T) {
	server := served(t, "--cpus", "busy=5,idle=1,isolated=2", "--records", "x86_64-6.12", "--gather", "100ms")
	tab := browse(t, server)
	tab.Await(`$("link").textContent === "connected"`)

	tab.Do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // the link that skips to the form
	tab.Do(chromedp.Focus(`#update [name=filter]`), chromedp.SetValue(`#update [name=filter]`, "vfs_*"),
		chromedp.KeyEvent(kb.Enter))
	tab.Await(`/^Update \d+: live, in batch \d+ after \d+ ms$/.test($("answer").textContent)`)
	if on, all := enabled(t, server, "vfs_*"); on != all || all < 10 {
		t.Errorf("the page says live, and %d of %d records are enabled", on, all)
	}
	tab.Await(`$("updates").tBodies[0].rows[0]?.cells[4].textContent === "live"`)
	tab.Await(`tracks.drawn.length > 0`)
	tab.Await(`tracks.cpus.every(cpu => cpu.taken.sync > 0 || cpu.rounds_sent > 0)`)

	tab.Await(`new Set(tracks.drawn.filter(event => event.kind === "step").map(event => event.name)).size >= 9`)
	tab.Do(chromedp.SetValue("#span", "update"))
	Ask[bool](tab, `$("span").dispatchEvent(new Event("change"))`)
	if got := Ask[float64](tab, "tracks.span()"); got <= 0.1 || got > 10_000 {
		t.Errorf("the last update took %v ms", got)
	}

	tab.Do(chromedp.Click(`#updates tbody td button`))
	tab.Await(`/^page wants \d+ records with function\.$/.test($("wants").textContent)`)

	watchFigures(tab)
	together(t, server, 8)
	tab.Await(`shown.batches.some(batch => batch.requests > 1)`)
	tab.Await(`$("state").textContent === "idle" && $("phase").textContent === "patcher: idle"`)
	if seen := Ask[[]string](tab, `[...new Set(disagreements)]`); len(seen) > 0 {
		t.Errorf("figures disagree: %q", seen)
	}
	if looked := Ask[int](tab, "looked"); looked == 0 {
		t.Error("nobody has looked at the figures")
	}

	tab.Do(chromedp.Click("#recount"))
	tab.Await(`/^\d+ records were enabled then.$/.test($("counted").textContent)`)

	tab.Do(chromedp.SetValue(`#experiment [name=name]`, "ipi-burst"), chromedp.Focus("#experiment button"),
		chromedp.KeyEvent(kb.Enter))
	tab.Await(`!$("plot").hidden && $("plot").complete && $("plot").naturalWidth > 100`)
	tab.Await(`$("files").children.length >= 3`)
	if said := Ask[string](tab, `$("progress").textContent`); !strings.HasPrefix(said, "ipi-burst: done") {
		t.Errorf("the experiment ended so: %q", said)
	}
	tab.Picture("served-light")
	tab.Scheme("dark")
	tab.Do(chromedp.SetValue(`#update [name=filter]`, "tcp_*"), chromedp.Click("#update button"))
	tab.Await(`/^Update 1\d: live/.test($("answer").textContent)`)
	tab.Picture("served-dark")

	tab.Do(chromedp.Focus("#canvas"), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowDown), chromedp.Focus("#plug"),
		chromedp.KeyEvent(kb.Enter))
	tab.Await(
		`$("interrupts").tBodies[0].rows[1]?.cells[1].textContent === "offline" && $("plug").textContent === "Plug in CPU 1"`,
	)

	tab.Do(chromedp.SetValue(`#update [name=filter]`, "nothing_is_called_this"), chromedp.Click("#update button"))
	tab.Await(
		`$("answer").classList.contains("bad") && document.activeElement.name === "filter" && document.activeElement.getAttribute("aria-invalid") === "true"`,
	)
}

// asks submits an update.
func asks(t *testing.T, server, body string) {
	t.Helper()
	reply, err := http.Post(server+"/v1/updates", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s: %s", body, reply.Status)
	}
}

// TestHeld: the page says what is held, until when and why, also when twenty others came later, and who wants what.
// What is held can be cancelled there.
func TestHeld(t *testing.T) {
	server := served(t, "--cpus", "busy=2,isolated=1", "--records", "gen:n=100", "--budget", "isolated=3/1h")
	asks(t, server, `{"client": "ftrace", "records": ["fn1", "fn2"], "enable": true, "lease": 100000, "wait": true}`)
	asks(t, server, `{"client": "perf", "records": ["fn3"], "enable": true, "hold": true}`)
	for range 25 {
		asks(t, server, `{"client": "other", "records": ["fn9"], "enable": false, "wait": true}`)
	}
	tab := browse(t, server)
	tab.Await(`/^Update 2 of perf is held until \d.*: isolated=3\/1h0m0s, of which it takes 3 Cancel$/.test($("held").textContent)`)
	tab.Await(`$("updates").rows.length === 1 + 20 + 1`)
	tab.Await(`/^ftracefunction2\d+\/\d+\/\d+, \d/.test($("clients").tBodies[0].rows[0]?.textContent)`)
	for _, width := range []int64{1280, 390} {
		tab.Do(chromedp.EmulateViewport(width, 844))
		tab.Await(`tracks.width <= innerWidth`)
		if cut := tab.TooWide(); len(cut) > 0 {
			t.Errorf("on a screen of %d pixels these are cut: %q", width, cut)
		}
		tab.Picture(fmt.Sprintf("held-%d", width))
	}
	tab.Do(chromedp.Click("#held button"))
	tab.Await(`$("held").children.length === 0 && $("updates").rows.length === 1 + 20`)
}

// TestToken: a page that may not read asks for a token, and one that may only read
// says so when more is asked of it.
func TestToken(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("full 0123456789abcdef0123\nread fedcba9876543210fedc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := open(t, served(t, "--records", "gen:n=100", "--token-file", tokens))
	tab.Do(chromedp.WaitVisible("#login"))
	tab.Do(chromedp.SendKeys("#token", "fedcba9876543210fedc"+kb.Enter), chromedp.WaitVisible("#interrupts tbody tr"))
	tab.Await(`$("link").textContent === "connected" && $("login").hidden`)
	tab.Do(chromedp.Click("#update button"))
	tab.Await(`$("answer").textContent === "Authorization: this token may only read"`)
}
