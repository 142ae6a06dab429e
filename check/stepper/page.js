"use strict";
// One stepper for each case: what is shown follows from the number of the step alone.
const steppers = [];
let active = null;

function el(name, className, text) {
	const e = document.createElement(name);
	if (className) e.className = className;
	if (text !== undefined) e.textContent = text;
	return e;
}

// bytes shows a text; those that mark has are marked.
function bytes(text, className, mark) {
	const row = el("span", "text " + (className || ""));
	text.split(" ").forEach((b, i) => {
		const e = el("span", "byte", b);
		const m = mark && mark(b, i);
		if (m) e.classList.add(m);
		row.append(e);
	});
	return row;
}

function line(label, content) {
	const row = el("div", "row");
	row.append(el("span", "soft", label), content);
	return row;
}

class Stepper {
	constructor(root) {
		this.root = root;
		this.trace = JSON.parse(root.querySelector(".trace").textContent);
		this.view = root.querySelector(".stepper");
		this.items = [...root.querySelectorAll(".all li")];
		this.range = this.view.querySelector("input");
		this.timer = 0;
		this.last = {};
		this.patchers = [...new Set(this.trace.steps.map(s => s.who).filter(w => w.startsWith("patcher")))].sort();
		this.view.hidden = false;
		this.range.addEventListener("input", () => this.show(Number(this.range.value) - 1));
		this.view.querySelectorAll("[data-go]").forEach(b => b.addEventListener("click", () => this.go(b.dataset.go)));
		this.items.forEach((li, i) => li.addEventListener("click", () => this.show(i)));
		root.addEventListener("pointerdown", () => { active = this; });
		root.addEventListener("focusin", () => { active = this; });
		this.show(0);
	}

	go(where) {
		const end = this.trace.steps.length - 1;
		const to = {first: 0, back: this.at - 1, forward: this.at + 1, last: end}[where];
		if (where === "play") return this.play(!this.timer);
		this.play(false);
		this.show(Math.max(0, Math.min(end, to)));
	}

	play(on) {
		clearInterval(this.timer);
		this.timer = 0;
		if (on) {
			if (this.at === this.trace.steps.length - 1) this.show(0);
			this.timer = setInterval(() => {
				this.show(this.at + 1);
				if (this.at === this.trace.steps.length - 1) this.play(false);
			}, 1200);
		}
		const b = this.view.querySelector("[data-go=play]");
		b.textContent = on ? "pause" : "play";
		b.setAttribute("aria-pressed", on);
	}

	show(at) {
		this.at = at;
		const steps = this.trace.steps, step = steps[at], before = steps[Math.max(0, at - 1)];
		this.range.value = at + 1;
		this.view.querySelector(".at").textContent = "step " + (at + 1) + " of " + steps.length;
		const now = this.view.querySelector(".now");
		now.replaceChildren(el("b", "", step.who), " " + step.what);
		this.view.querySelector("[data-go=first]").disabled = this.view.querySelector("[data-go=back]").disabled = at === 0;
		this.view.querySelector("[data-go=last]").disabled = this.view.querySelector("[data-go=forward]").disabled = at === steps.length - 1;
		this.items.forEach((li, i) => i === at ? li.setAttribute("aria-current", "step") : li.removeAttribute("aria-current"));
		this.actors(step, at);
		this.sites(step, before);
		this.broken(step, at === steps.length - 1);
	}

	// did is the latest thing that somebody has done.
	did(who, at) {
		for (let i = at; i >= 0; i--) if (this.trace.steps[i].who === who) return this.trace.steps[i].what;
		return "has done nothing yet";
	}

	actors(step, at) {
		const cards = [];
		const card = (who, state) => {
			const c = el("div", "actor" + (step.who === who ? " acts" : "")), patching = state === "patching";
			c.append(el("h3", "", who), el("p", "", patching ? "the patcher sits here" : this.did(who, at)));
			if (state && !patching) c.append(el("p", "soft", "now: " + state.replace(/ !$/, "; an interrupt waits")));
			cards.push(c);
		};
		this.patchers.forEach(p => card(p, ""));
		step.cpus.forEach((state, i) => card("cpu " + i, state));
		this.view.querySelector(".actors").replaceChildren(...cards);
	}

	sites(step, before) {
		const cards = step.sites.map((site, i) => {
			const was = before.sites[i].bytes.split(" ");
			const c = el("div", "site");
			c.append(el("h3", "", "site " + i));
			c.append(line("in memory", bytes(site.bytes, "", (b, n) => b !== was[n] ? "fresh" : "")));
			if (site.literal) c.append(el("p", "soft", "names " + site.literal));
			site.fetch.forEach((texts, cpu) => {
				if (step.cpus[cpu] === "patching") return;
				const all = el("span", "windows");
				texts.forEach((t, age) => {
					if (age) all.append(el("span", "soft", " or older bytes of "));
					all.append(bytes(t, "age-" + Math.min(age, 3)));
				});
				c.append(line("cpu " + cpu + " may fetch", all));
			});
			return c;
		});
		this.view.querySelector(".sites").replaceChildren(...cards);
	}

	broken(step, last) {
		const v = this.trace.violation, box = this.view.querySelector(".broken");
		const broke = last && v.Property;
		box.hidden = !broke;
		if (!broke) return;
		const proof = box.querySelector(".proof");
		proof.replaceChildren();
		const site = step.sites[v.Site], texts = site && site.fetch[v.CPU];
		if (v.Bytes && texts) {
			const from = (b, i) => { const n = texts.findIndex(t => t.split(" ")[i] === b); return n > 0 ? "from-" + Math.min(n, 3) : ""; };
			proof.append(line("cpu " + v.CPU + " executed", bytes(v.Bytes, "", from)));
			if (v.Bytes.split(" ").length > 1 && texts.length > 1)
				proof.append(el("p", "soft", "Each byte has the colour of the newest version that has it there."));
		}
	}
}

// begin makes a case's stepper, where it has a trace, and colours its answer.
function begin(c) {
	if (c.querySelector(":scope > .trace")) steppers.push(new Stepper(c));
	const answer = c.querySelector(".answer");
	if (/^(UNSAFE|REFUTED)/.test(answer.textContent)) answer.classList.add("unsafe");
	if (/^(SAFE|PROVED)/.test(answer.textContent)) answer.classList.add("safe");
}

// checker loads the checker, which is beside the page, the first time that somebody asks.
let loaded = null;
function checker() {
	loaded ||= new Promise((done, failed) => {
		const s = el("script");
		s.src = "textpoke-checker.js";
		s.onload = done;
		s.onerror = () => { loaded = null; failed(new Error("textpoke-checker.js is not beside this page: .ci/checker makes it")); };
		document.head.append(s);
	}).then(async () => {
		const packed = new Blob([Uint8Array.from(atob(textpokeChecker), c => c.charCodeAt(0))]);
		const code = await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
		const go = new Go();
		go.run((await WebAssembly.instantiate(code, go.importObject)).instance);
	});
	return loaded;
}

class Editor {
	constructor(root, index) {
		this.plan = root.querySelector("textarea");
		this.told = root.querySelector(".told");
		this.choices = JSON.parse(root.querySelector(".choices").textContent);
		this.link = root.querySelector(".link");
		this.place = "#edit-" + index + "=";
		root.querySelector("button").addEventListener("click", () => this.ask());
		this.plan.addEventListener("input", () => this.linked());
		if (location.hash.startsWith(this.place)) {
			this.plan.value = decodeURIComponent(location.hash.slice(this.place.length));
			root.open = true;
			root.scrollIntoView();
			this.ask();
		}
		this.linked();
	}

	linked() { this.link.href = this.place + encodeURIComponent(this.plan.value); }

	async ask() {
		this.told.textContent = "The checker is asked ...";
		await new Promise(done => setTimeout(done, 50)); // so that this can be seen
		try {
			await checker();
			const told = JSON.parse(textpokeCheck(JSON.stringify({Plan: this.plan.value, Choices: this.choices})));
			if (told.wrong) throw new Error(told.wrong);
			this.told.innerHTML = told.html;
			begin(this.told.firstElementChild);
		} catch (e) {
			this.told.textContent = e.message;
		}
	}
}

document.querySelectorAll(".case").forEach(begin);
document.querySelectorAll(".editor").forEach((e, i) => new Editor(e, i + 1));
active = steppers[0] || null;
const keys = {ArrowRight: "forward", j: "forward", ArrowLeft: "back", k: "back", Home: "first", End: "last", p: "play"};
document.addEventListener("keydown", e => {
	if (!active || !keys[e.key] || e.ctrlKey || e.metaKey || e.altKey || /range|textarea/.test(e.target.type)) return;
	e.preventDefault();
	active.go(keys[e.key]);
});
