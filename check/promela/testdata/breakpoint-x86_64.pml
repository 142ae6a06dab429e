/*
 * x86_64, 2 CPUs, 1 site; weak fetches; btree lookups, references percpu.
 *
 * spin -a FILE && gcc -O2 -DSAFETY -o pan pan.c && ./pan -m1000000
 */

#define CPUS 2
#define HOME 0	/* the CPU that the patcher sits on; its own task waits meanwhile */
#define SITES 1

/* What must hold. Each is asserted where it would be broken. */
bit torn_fetch, stale_after_completion, broken_site;
bit overflow;
bit unhandled_breakpoint;
bit use_after_free, torn_literal;

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

#define newest_is(site, set)	((set) >> newest[site] & 1)

/* Site 0's versions:
 *    0  0f 1f 44 00 00, text 2
 *    1  cc 1f 44 00 00, text 1
 *    2  cc f7 ff fe ff, text 1
 *    3  e8 f7 ff fe ff, text 3
 *    4  cc f7 ff fe ff, text 1
 *    5  cc 1f 44 00 00, text 1
 *    6  0f 1f 44 00 00, text 2
 */

/* Texts as a fetch gives them, by number. */
#define MIXTURE 0	/* of versions, and none of them */
#define BREAKPOINT 1	/* whatever follows it */
#define TEXTS 4
#define VERSIONS 7

/* Which texts a fetch may give, as bits; by site, oldest and newest version. */
hidden int may[49] = {
	4, 6, 7, 15, 15, 15, 15,
	0, 2, 2, 11, 11, 11, 15,
	0, 0, 2, 10, 10, 11, 15,
	0, 0, 0, 8, 10, 11, 15,
	0, 0, 0, 0, 2, 2, 7,
	0, 0, 0, 0, 0, 2, 6,
	0, 0, 0, 0, 0, 0, 4
};

/* Which versions have a text; by site and text. */
hidden int has_text[4] = {
	0, 54, 65, 8
};

/* What executing a text does, by site and text: 0 goes on behind, 1 + o calls through ops o. */
hidden byte calls_ops[4] = {
	0, 0, 0, 3
};
#define calls(t)	calls_ops[site * TEXTS + (t)]

#define may_fetch(i, t)	(may[((site) * VERSIONS + synced[me * SITES + site]) * VERSIONS + newest[site]] >> (t) & 1)
#define has(i, t)	has_text[(site) * TEXTS + (t)]
#define window		((2 << newest[site]) - (1 << synced[me * SITES + site]))
#define promised	(since[site] != 0)
#define as_promised	(-1 << (since[site] - 1))

/* A CPU synchronises: from now on it fetches what is there now, or newer. */
inline sync(cpu)
{
	synced[cpu * SITES + 0] = newest[0];
}

/* ---- Ops ---- */
mtype = { wild, nobody, tracer, freed };
/* 0: no ops has this address */
/* 1: 0xffff800082345678 calls nobody */
/* 2: 0xffffffff80ff0000 may be called once it is attached */
mtype outcome[3] = { wild, nobody, wild };	/* of a call through each */

/* ---- What trap handlers find ---- */
byte published;		/* number of a batch, 0 for none */
short refs[2];	/* who may still look at it */
/* What a handler acts as, by batch and site: 0 no entry, 1 goes on behind the site, 2 + o calls through ops o. */
hidden byte acts_as[3] = {
	0,
	4,
	1
};
#define acts(batch, site)	acts_as[(batch) * SITES + (site)]

#define ref(cpu)	refs[cpu]

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
	:: t == BREAKPOINT -> t = 0; goto trapped
	:: t != BREAKPOINT && torn(i) -> violate(torn_fetch)
	:: t != BREAKPOINT && !torn(i) && stale(i) -> violate(stale_after_completion)
	:: t != BREAKPOINT && !torn(i) && !stale(i)
	fi
}

/* What was fetched is executed. */
inline execute()
{
	if
	:: calls(t) == 0 -> d_step { t = 0; site = 0 }; goto boundary
	:: calls(t) != 0 -> d_step { ops = calls(t) - 1; t = 0 }; goto calling
	fi
}

active [CPUS] proctype cpu()
{
	byte site, t, ops;
	bit quiet;
	byte act;

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
		fetch(0);
		execute() }
	fi;

leased:	/* the patcher sits here */
	give_back?eval(me) -> goto boundary;

calling:	/* the ops is loaded */
	poll();
	if
	:: atomic { outcome[ops] == tracer || outcome[ops] == nobody -> ops = 0; site = 0 }; goto boundary
	:: outcome[ops] == freed -> violate(use_after_free)
	:: outcome[ops] == wild -> violate(torn_literal)
	fi;

trapped:	/* ran into a breakpoint: interrupts are off from here to the end of the handler */
	if
	:: ref(me) == 0 -> goto missed
	:: atomic { ref(me) != 0 -> ref(me)++ }
	fi;
	if	/* looks the address up */
	:: published == 0 -> violate(use_after_free)	/* of the batch */
	:: atomic { published != 0 -> act = acts(published, site) }
	fi;
	if	/* gives the reference back */
	:: atomic { act == 0 -> ref(me)-- }; goto missed
	:: atomic { act != 0 -> ref(me)-- }
	fi;
	atomic {	/* returns from the trap, as if the new instruction had been executed */
		atomic { sync(me) };
		if
		:: act == 1 -> d_step { act = 0; site = 0 }; goto boundary
		:: act > 1 -> d_step { ops = act - 2; act = 0 }; goto calling
		fi
	};
missed:	/* nobody knows the breakpoint */
	if
	:: newest_is(site, has(0, BREAKPOINT)) -> violate(unhandled_breakpoint)
	:: !newest_is(site, has(0, BREAKPOINT))	/* it has gone: forgiven */
	fi;
	atomic { sync(me) };
	poll();
	atomic { fetch(0); execute() };
}
/* ---- The patcher ---- */

/* Handlers find a batch; no further handler does. */
inline make_findable(batch)
{
	published = batch;
	refs[0] = 1;
	refs[1] = 1;
	skip
}

inline take_references_back()
{
	refs[0]--;
	refs[1]--;
	skip
}

/* The site must be one of these versions; a promise about it is taken back. */
#define reads(s)	(newest[s])
inline verify(s, versions)
{
	atomic {
		if
		:: (versions) >> reads(s) & 1 -> d_step { since[s] = 0; taken_back[s]++ }
		:: !((versions) >> reads(s) & 1) -> violate(broken_site)
		fi
	}
}

/* The site's next version is stored. */
inline write(s)
{
	newest[s]++
}

/* No store waits; this CPU fetches afresh. */
inline fence() { atomic { sync(HOME) } }

/* Every other CPU is asked for something. */
inline send(request)
{
	box[1] = request;
	unanswered = CPUS - 1
}

inline round()
{
	atomic { send(sync_request); sync(HOME) };
	unanswered == 0
}

/* Until no task is on its way to an ops. */
inline grace_period()
{
	atomic { send(quiesce_request) };
	unanswered == 0
}

inline publish(batch) { atomic { make_findable(batch) } }
inline unpublish() { atomic { take_references_back() } }

inline wait_handlers()
{
	refs[0] == 0 && refs[1] == 0;
	published = 0
}

inline clear()
{
	published = 0
}

/* The ops may be called; it is freed. */
inline attach(ops) { outcome[ops] = tracer }
inline release(ops) { outcome[ops] = freed }

/* From now on nobody executes what was there before one of these versions, or before the next one where that is still to come. */
inline settle(s, versions)
{
	since[s] = newest[s] + (newest_is(s, versions) -> 1 : 2)
}

/* The program is over, and must have left one of these versions. */
inline leave(s, versions)
{
	if
	:: newest_is(s, versions)
	:: !newest_is(s, versions) -> violate(broken_site)
	fi
}

active proctype patcher()
{
	lease!HOME;
	attach(2);	/* Attach */
	verify(0, 65);	/* Verify 0 */
	publish(1);	/* Publish 0 */
	write(0);	/* Write breakpoint 0 */
	round();	/* Sync 1 */
	write(0);	/* Write tail 0 */
	round();	/* Sync 2 */
	write(0);	/* Write head 0 */
	round();	/* Sync 3 */
	unpublish();	/* Unpublish */
	wait_handlers();	/* WaitHandlers */
	settle(0, 8);	/* Settle 0 */
	verify(0, 8);	/* Verify 0 back */
	publish(2);	/* Publish 0 back */
	write(0);	/* Write breakpoint 0 back */
	round();	/* Sync 1 */
	write(0);	/* Write tail 0 back */
	round();	/* Sync 2 */
	write(0);	/* Write head 0 back */
	round();	/* Sync 3 */
	unpublish();	/* Unpublish */
	wait_handlers();	/* WaitHandlers */
	grace_period();	/* GracePeriod */
	settle(0, 65);	/* Settle 0 back */
	atomic {
		release(2);	/* Release */
		leave(0, 65);
		give_back!HOME
	};
end:	false
}
