/*
 * arm64, 2 CPUs, 2 sites; weak fetches; btree lookups, references percpu.
 *
 * spin -a FILE && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
 */

#define CPUS 2
#define HOME 0	/* the CPU that the patcher sits on; its own task waits meanwhile */
#define SITES 2

/* What must hold. Each is asserted where it would be broken. */
bit torn_fetch, stale_after_completion, broken_site;
bit use_after_free, torn_literal;
bit lost_call;

inline violate(property)
{
	atomic { property = true; assert(!property) };
	false	/* whoever broke it goes on no more */
}

/* ---- Text ----
 *
 * Every store makes a new version of a site. Versions are numbered from 0, and
 * sets of them are bits: bit v is version v. A CPU may fetch any version from the
 * one that it saw when it last synchronised to the newest one.
 */
byte newest[SITES];		/* version in memory */
byte synced[CPUS * SITES];	/* version that each CPU has seen */
byte since[SITES];		/* promised: nobody executes what was there before this version, plus 1; 0: nothing is promised */
byte taken_back[SITES];		/* how often the promise was */
byte literal[SITES];		/* version of the pointer to the site's ops */

#define newest_is(site, set)	((set) >> newest[site] & 1)

/* Site 0's versions:
 *    0  1f 20 03 d5, text 2
 *    1  ff bf ff 97, text 3
 *    2  1f 20 03 d5, text 2
 *   literal  0  0xffff800082345678, ops 1
 *   literal  1  0xffffffffc0a01040, ops 2
 *   literal  2  0xffff800082345678, ops 1
 */
/* Site 1's versions:
 *    0  1f 20 03 d5, text 2
 *    1  ef bf ff 97, text 3
 *    2  1f 20 03 d5, text 2
 *   literal  0  0xffff800082345678, ops 1
 *   literal  1  0xffffffffc0a01040, ops 2
 *   literal  2  0xffff800082345678, ops 1
 */

/* Texts as a fetch gives them, by number. */
#define MIXTURE 0	/* of versions, and none of them */
#define BREAKPOINT 1	/* whatever follows it */
#define TEXTS 4
#define VERSIONS 3

/* Which texts a fetch may give, as bits; by site, oldest and newest version. */
hidden int may[18] = {
	4, 12, 12,
	0, 8, 12,
	0, 0, 4,
	4, 12, 12,
	0, 8, 12,
	0, 0, 4
};

/* Which versions have a text; by site and text. */
hidden int has_text[8] = {
	0, 0, 5, 2,
	0, 0, 5, 2
};

/* What executing a text does, by site and text: 0 goes on behind, 1 + o calls through ops o. */
hidden byte calls_ops[8] = {
	0, 0, 0, 1,
	0, 0, 0, 1
};
#define calls(t)	calls_ops[site * TEXTS + (t)]

/* Which ops a version of a literal names, by site. */
hidden byte names_ops[6] = {
	1, 2, 1,
	1, 2, 1
};
#define names(version)	names_ops[site * 3 + (version)]
#define NOP_OPS 1

#define may_fetch(i, t)	(may[((site) * VERSIONS + synced[me * SITES + site]) * VERSIONS + newest[site]] >> (t) & 1)
#define has(i, t)	has_text[(site) * TEXTS + (t)]
#define window		((2 << newest[site]) - (1 << synced[me * SITES + site]))
#define promised	(since[site] != 0)
#define as_promised	(-1 << (since[site] - 1))

/* A CPU synchronises: from now on it fetches what is there now, or newer. */
inline sync(cpu)
{
	synced[cpu * SITES + 0] = newest[0];
	synced[cpu * SITES + 1] = newest[1];
}

/* ---- Ops ---- */
mtype = { wild, nobody, tracer, freed };
/* 0: no ops has this address */
/* 1: 0xffff800082345678 calls nobody */
/* 2: 0xffffffffc0a01040 may be called once it is attached */
mtype outcome[3] = { wild, nobody, wild };	/* of a call through each */

/* ---- Interrupts ---- */
mtype = { sync_request, stop_request, quiesce_request };
mtype box[CPUS];	/* one patcher waits for all answers before it asks again: one request at most */
byte unanswered;	/* how many answers it waits for */

/* The patcher takes over and gives back the CPU that it sits on, between two calls of its task. */
chan lease = [0] of { byte };
chan give_back = [0] of { byte };

/* ---- A CPU ----
 *
 * Every step is one access to what CPUs share, and what the CPU then does by
 * itself. What does not matter any more is set to 0.
 */
#define me _pid

/* Before an instruction the CPU looks for interrupts. */
inline poll()
{
	if
	:: box[me] == 0
	:: box[me] != 0 -> interrupted()
	fi
}

/* Requests are taken one after the other, until there is none; then the instruction follows at once. */
inline interrupted()
{
	do
	:: box[me] == 0 -> break
	:: atomic { box[me] == sync_request -> box[me] = 0 };
		atomic { sync(me) };
		unanswered--	/* the answer */
	:: atomic { box[me] == quiesce_request -> box[me] = 0; quiet = 1 }	/* is answered between two calls */
	od
}

#define torn(i)		((has(i, t) & window) == 0)
#define stale(i)	(promised && (has(i, t) & window & as_promised) == 0)

/* Instruction i of the site is fetched, out of the window: as text t. */
inline fetch(i)
{
	if
	:: may_fetch(i, 0) -> t = 0
	:: may_fetch(i, 1) -> t = 1
	:: may_fetch(i, 2) -> t = 2
	:: may_fetch(i, 3) -> t = 3
	fi;
	if
	:: torn(i) -> violate(torn_fetch)
	:: !torn(i) && stale(i) -> violate(stale_after_completion)
	:: !torn(i) && !stale(i)
	fi
}

/* What was promised about the site before it was fetched. */
inline remember()
{
	promise = since[site];
	count = (promise -> taken_back[site] : 0)
}

/* What was fetched is executed. */
inline execute()
{
	if
	:: calls(t) == 0 -> d_step { t = 0; site = 0 }; goto boundary
	:: calls(t) != 0 -> d_step { remember(); t = 0 }; goto entered
	fi
}

active [CPUS] proctype cpu()
{
	byte site, t, ops;
	bit quiet;
	byte promise, count;

boundary:	/* between two calls */
	if
	:: lease?eval(me) -> goto leased
	:: atomic { quiet -> quiet = 0; unanswered-- }; goto boundary
	:: !quiet && box[me] == 0
	:: !quiet && box[me] != 0 -> interrupted();
		if
		:: quiet -> goto boundary	/* and answers first */
		:: !quiet
		fi
	fi;
	if
	:: lease?eval(me) -> goto leased
	:: atomic {
		if	/* which site is called */
		:: site = 0
		:: site = 1
		fi;
		fetch(0);
		execute() }
	fi;

leased:	/* the patcher sits here */
	give_back?eval(me) -> goto boundary;

entered:	/* in the common entry */
	poll();
	atomic {	/* loads the ops */
		ops = names(literal[site]);
		if
		:: ops != NOP_OPS -> promise = 0; count = 0
		:: else
		fi
	};

calling:	/* the ops is loaded */
	poll();
	if
	:: atomic { outcome[ops] == tracer || outcome[ops] == nobody && promise == 0 -> ops = 0; promise = 0; count = 0; site = 0 }; goto boundary
	:: outcome[ops] == freed -> violate(use_after_free)
	:: outcome[ops] == wild -> violate(torn_literal)
	:: outcome[ops] == nobody && promise != 0	/* was a tracer promised? */
	fi;
	if
	:: since[site] == promise && taken_back[site] == count -> violate(lost_call)
	:: atomic { since[site] != promise || taken_back[site] != count -> ops = 0; promise = 0; count = 0; site = 0 }; goto boundary
	fi;
}
/* ---- The patcher ---- */

/* Stores wait in a buffer. One to the same place is let out before the next one goes in. */
bit text_waits[SITES];
bit literal_waits[SITES];
mtype ops_waits[3];	/* what each ops is to become; 0: what it is */

inline drain_text(s)
{
	atomic { text_waits[s] -> d_step { text_waits[s] = 0; newest[s]++ } }
}

inline drain_literal(s)
{
	atomic { literal_waits[s] -> d_step { literal_waits[s] = 0; literal[s]++ } }
}

inline drain_ops(ops)
{
	atomic { ops_waits[ops] != 0 -> d_step { outcome[ops] = ops_waits[ops]; ops_waits[ops] = 0 } }
}

active proctype buffer()
{
end:	do
	:: drain_text(0)
	:: drain_literal(0)
	:: drain_text(1)
	:: drain_literal(1)
	:: drain_ops(2)
	od
}

/* The site must be one of these versions; a promise about it is taken back. A CPU reads what waits in its own buffer. */
#define reads(s)	(newest[s] + text_waits[s])
inline verify(s, versions)
{
	atomic {
		if
		:: (versions) >> reads(s) & 1 -> d_step { since[s] = 0; taken_back[s]++ }
		:: !((versions) >> reads(s) & 1) -> violate(broken_site)
		fi
	}
}

#define reads_literal(s)	(literal[s] + literal_waits[s])
inline verify_literal(s, versions)
{
	atomic {
		if
		:: (versions) >> reads_literal(s) & 1
		:: !((versions) >> reads_literal(s) & 1) -> violate(broken_site)
		fi
	}
}

/* The site's next version is stored. */
inline write(s)
{
	do
	:: drain_text(s)
	:: atomic { !text_waits[s] -> if :: text_waits[s] = 1 :: newest[s]++ fi }; break
	od
}

inline write_literal(s)
{
	do
	:: drain_literal(s)
	:: atomic { !literal_waits[s] -> if :: literal_waits[s] = 1 :: literal[s]++ fi }; break
	od
}

#define nothing_waits	(!text_waits[0] && !literal_waits[0] && !text_waits[1] && !literal_waits[1] && ops_waits[2] == 0)

/* One of the stores that wait becomes visible. */
inline drain_one()
{
	if
	:: drain_text(0)
	:: drain_literal(0)
	:: drain_text(1)
	:: drain_literal(1)
	:: drain_ops(2)
	fi
}

/* Every store becomes visible; this CPU fetches afresh. */
inline fence()
{
	do
	:: drain_one()
	:: atomic { nothing_waits -> sync(HOME) }; break
	od
}

/* Every other CPU is asked for something. */
inline send(request)
{
	box[1] = request;
	unanswered = CPUS - 1
}

inline round()
{
	atomic { send(sync_request) };
	unanswered == 0
}

/* Until no task is on its way to an ops. It orders memory. */
inline grace_period()
{
	do
	:: drain_one()
	:: atomic { nothing_waits -> send(quiesce_request) }; break
	od;
	unanswered == 0
}

/* The ops may be called; it is freed. */
inline store_ops(ops, what)
{
	do
	:: drain_ops(ops)
	:: atomic { ops_waits[ops] == 0 -> if :: ops_waits[ops] = what :: outcome[ops] = what fi }; break
	od
}

inline attach(ops) { store_ops(ops, tracer) }
inline release(ops) { store_ops(ops, freed) }

/* From now on nobody executes what was there before one of these versions, or before the next one where that is still to come. */
inline settle(s, versions)
{
	since[s] = newest[s] + (newest_is(s, versions) -> 1 : 2)
}

/* The program is over, and must have left one of these versions. */
inline leave(s, versions)
{
	if
	:: newest_is(s, versions) || text_waits[s]
	:: !newest_is(s, versions) && !text_waits[s] -> violate(broken_site)
	fi
}

active proctype patcher()
{
	lease!HOME;
	attach(2);	/* Attach */
	fence();	/* Fence */
	verify(0, 5);	/* Verify 0..1 */
	verify_literal(0, 5);
	verify(1, 5);
	verify_literal(1, 5);
	write_literal(0);	/* Write literal 0 */
	fence();	/* Fence */
	write(0);	/* Write word 0 */
	fence();	/* Fence */
	write_literal(1);	/* Write literal 1 */
	fence();	/* Fence */
	write(1);	/* Write word 1 */
	fence();	/* Fence */
	verify(0, 2);	/* Verify 0..1 back */
	verify_literal(0, 2);
	verify(1, 2);
	verify_literal(1, 2);
	write_literal(0);	/* Write literal 0 back */
	fence();	/* Fence */
	write(0);	/* Write word 0 back */
	fence();	/* Fence */
	write_literal(1);	/* Write literal 1 back */
	fence();	/* Fence */
	write(1);	/* Write word 1 back */
	fence();	/* Fence */
	grace_period();	/* GracePeriod */
	atomic {
		release(2);	/* Release */
		leave(0, 5);
		leave(1, 5);
		give_back!HOME
	};
end:	false
}
