// Copyright The treecore Authors
// SPDX-License-Identifier: Apache-2.0

// Package ops gives the calls on a tree core a text form: one call is one
// line. A log of such lines replays a bug report, a random failure shrinks to a
// few of them, and the scripts in testdata are made of them.
//
// Three layers stand on each other:
//
//   - [Call] is one call of [Machine]; [ParseCall] and [Call.Format] are its
//     text form. [Executor] runs a call and renders everything it returned.
//   - [Story] adds names for nodes and receipts, a small controller that owns
//     slots, and verbs that make several calls ("insert" is begin, execute,
//     resume, end). It counts slots after every line.
//   - [RunScripts], [Compare] and [RandomTest] run stories: from files, on two
//     machines side by side, and made up by a seeded generator.
//
// # Grammar of a log
//
//	log    = header { line }
//	header = "treecore-log 1" { " " field }
//	line   = verb { " " field } | "#" any text | nothing
//	field  = name "=" value | name            a bare name is a flag that is set
//
// Lines end in "\n" ("\r\n" is read, too). Fields are separated by spaces or
// tabs. The order of fields is free for readers; writers keep the order of the
// tables below. No field may stand twice. A field that a table marks with "?"
// is optional and is not written when it has its default; all others are
// required. A flag is written when it is set.
//
// # Values
//
//	int        decimal, a leading "-" where negative values make sense
//	node       int64 decimal, 0 and negative ones included (they are stale)
//	string     Go syntax, strconv.Quote: "a b", "", "\xff". Readers also take a
//	           bare word of letters, digits and _ . - /
//	component  full | swa | mamba
//	set        components joined by commas in component order, or none
//	tokens     items joined by commas, or "-" for an empty list. An item is a
//	           number 7, an ascending range 1..4 (both ends included), or a
//	           repetition 5*3 (which is 5,5,5). Numbers are 0 to 4294967295.
//	           Writers go from left to right: where the next token is equal
//	           they write the longest repetition, else where it is greater by
//	           one the longest range, else one number. 1,2,2,2,5 is 1..2,2*2,5.
//	slots      as tree.Slots prints them: runs joined by commas, a numbered run
//	           as 7 or 20..27, an opaque run of buffer 2 as buf2[7] or
//	           buf2[10..13], and "-" for an empty list. A list that is absent
//	           (nil) is written by leaving the field out. Readers also take
//	           repetitions 5*3.
//	receipt    node:skipped:swa, for example 3:mamba:17 or 3:none:0. node is the
//	           anchor (0: unknown), skipped a set, swa the device boundary of
//	           the SWA segment (0: up to the root). Two more parts, :full:swa,
//	           follow when a host boundary is not 0. The rest of a receipt has
//	           no effect on a release and is not written.
//	units      three ints joined by commas, full,swa,mamba
//	in-flight  id:node pairs joined by commas, or "-"
//	nodes      nodes joined by commas, or "-"
//	digests    digests joined by commas, each 64 hexadecimal digits, small
//	           letters written; "-" for an empty list. A list that is absent
//	           (nil) is written by leaving the field out.
//	transfer   component:device:host:nodes, for example swa:20..23::5,7. device
//	           and host are slots; a list that is absent (nil) is nothing at
//	           all between its colons. nodes is as above, the root side first.
//	           The keys of a transfer have no effect on the calls that take
//	           transfers and are not written.
//	transfers  transfers joined by semicolons, or "-"; written in the order
//	           given.
//
// A list names at most [MaxListLen] tokens or slots.
//
// # Header
//
//	treecore-log 1 components=set page=int window=int grid=int max-states=int
//	    eagle=true|false policy=string parameter=int ... events? sessions?
//
// All on one line. Writers write all fields but the two flags always, with the
// options as the core completed them; readers take every field as optional
// (zero value of tree.Options). policy is a bare word where it can be; every
// field with a name that is not in the list is a parameter of the policy, and
// parameters stand in ascending order of their names:
//
//	treecore-log 1 components=full,swa page=4 window=4 grid=0 max-states=-1 eagle=false policy=slru protected_threshold=3 events
//
// # Verbs
//
// KEY stands for four fields:
//
//	tokens=tokens extra=string? salt=string? bigram?
//
// extra is written exactly when the namespace has an extra key (then also when
// it is empty: extra=""); salt when it is not empty; bigram when the key is
// marked as bigrams.
//
// The plain questions and the switches:
//
//	reset                                         Reset
//	root                                          Root
//	is-root node=node                             IsRoot
//	is-backed-up node=node                        IsBackedUp
//	is-full-device-evicted node=node              IsFullDeviceEvicted
//	switches host-tier? storage? write-through-threshold=int? write-back?
//	    swa-host-pool? host-buffer-only? external-linker? swa-ring-layout?
//	                                              SetSwitches; all switches each
//	                                              time, threshold default 256
//	prefetch-anchor node=node                     PrefetchAnchor
//
// Match:
//
//	match KEY                                     Match
//	empty-match                                   EmptyMatch
//	match-full-device-prefix KEY                  MatchFullDevicePrefix
//	collect-full-device-slots from=node until=node CollectFullDeviceSlots
//
// Insert:
//
//	begin-insert KEY slots=slots? mamba=slots? prev=int? swa-evicted=int?
//	    swa-branch=int? chunked? priority=int? adopted? session=string?
//	                                              BeginInsert; ints default 0,
//	                                              session default ""
//	resume-insert                                 ResumeInsert
//	has-ongoing-insert                            HasOngoingInsert
//	end-insert                                    EndInsert
//	set-device node=node component=component slots=slots?
//	                                              SetComponentDeviceValue
//	device-value node=node component=component    ComponentDeviceValue
//	has-host-value-only node=node component=component
//	                                              ComponentHasHostValueOnly
//	evict-excess-path-states node=node            EvictExcessPathStates
//	swa-tombstone-ranges KEY start=int end=int    SWATombstoneRanges
//	attach-swa-window KEY start=int end=int slots=slots?
//	                                              AttachSWAWindow
//
// Locks:
//
//	lock node=node skip=set?                      Lock; skip default none
//	unlock node=node receipt=receipt skip-swa?    Unlock
//	release-swa-lock node=node receipt=receipt    ReleaseSWALock
//	release-window-lock node=node component=component receipt=receipt
//	                                              ReleaseWindowLock
//	pin-full node=node                            PinFull
//	unpin-full node=node                          UnpinFull
//
// Eviction:
//
//	evict-start component=component n=int         EvictStart
//	evict-next component=component totals=units   EvictNext
//	evict-leaf node=node write-back?              EvictLeaf
//	demote node=node                              Demote
//	evict-end component=component                 EvictEnd
//
// Sizes:
//
//	evictable-size component=component            EvictableSize
//	protected-size component=component            ProtectedSize
//	total-size                                    TotalSize
//
// Sessions:
//
//	open-session id=string                        OpenSession
//	ensure-session id=string                      EnsureSession
//	register-session id=string generation=int node=node
//	                                              RegisterSession
//	release-session id=string                     ReleaseSession
//
// Host locks:
//
//	lock-host node=node                           LockHost
//	unlock-host node=node receipt=receipt         UnlockHost
//
// Backup to the host:
//
//	build-backup node=node                        BuildBackupSpec
//	commit-backup node=node slots=slots? aux=transfers?
//	                                              CommitBackup; slots is full,
//	                                              aux default "-"
//	mark-write-through-pending nodes=nodes ack=int
//	                                              MarkWriteThroughPending
//	finish-write-through nodes=nodes ack=int      FinishWriteThrough
//	undo-backup node=node components=set ack=int  UndoBackup
//
// Load back from the host:
//
//	build-load-back node=node                     BuildLoadBackSpec
//	commit-load-back node=node slots=slots? full=transfer? aux=transfers?
//	    pinned?                                   CommitLoadBack; slots is full,
//	                                              the others are the spec; full
//	                                              default full:::- (Component
//	                                              Full, nothing else), aux
//	                                              default "-"
//	finish-load-back node=node                    FinishLoadBack
//
// Host eviction, and eviction with write-back:
//
//	evict-host component=component n=int          EvictHost
//	reclaim-digest                                ReclaimDigest
//	drop-subtree node=node                        DropSubtreeNoHost
//	finish-state-eviction component=component node=node
//	                                              FinishStateEviction
//
// Between storage and the host:
//
//	insert-host anchor=node KEY slots=slots? hashes=digests?
//	                                              InsertHost
//	commit-prefetch anchor=node inserted=node prefix-len=int? total-len=int?
//	    dropped? aux=transfers? found=units?      CommitPrefetch; inserted,
//	                                              prefix-len, total-len and
//	                                              dropped are Inserted (its
//	                                              actions are not written);
//	                                              ints default 0, aux default
//	                                              "-", found default 0,0,0
//	build-storage node=node with-prefix?          BuildStorageSpec
//
// Marks of what is in storage:
//
//	mark-stored from=node until=node              MarkStored
//
// Offloads to an external linker:
//
//	build-offload node=node                       BuildOffload
//	mark-offload-pending node=node                MarkOffloadPending
//	finish-offload nodes=nodes ack=int success?   FinishOffload
//
// Buffer-only mode:
//
//	snapshot-buffer node=node with-prefix?        SnapshotBufferBackup
//	validate-buffer node=node units=int           ValidateBufferBackup
//
// Inspection of the host tier:
//
//	host-duplicates                               HostDuplicates
//
// A machine that is no [HostMachine] answers the verbs from lock-host to
// host-duplicates with "unsupported".
//
// Queries:
//
//	flatten-full                                  FlattenFull
//	flatten-mamba                                 FlattenMamba
//	walk-canary unlocked-only? swa-resident-only? WalkCanary
//	dfs-weight-order nodes=nodes                  DFSWeightOrder
//	sanity-check write-through=in-flight? load-back=in-flight?
//	                                              SanityCheck; default "-"
//
// Hash chains and events:
//
//	last-hash node=node                           LastHash
//	prefix-hashes node=node                       PrefixHashes
//	hashes node=node                              Hashes
//	backfill-hashes                               BackfillHashes
//	take-events                                   TakeEvents
//	record-all-cleared                            RecordAllCleared
//
// Inspection:
//
//	contains node=node                            Contains
//	is-device-evictable-leaf node=node            IsDeviceEvictableLeaf
//	is-host-evictable-leaf node=node              IsHostEvictableLeaf
//	nodes                                         Nodes
//	inspect node=node                             Inspect
//	recency component=component host?             RecencyOrder
//
// # Example
//
//	treecore-log 1 components=full,swa page=1 window=4 grid=0 max-states=-1 eagle=false policy=lru
//	begin-insert tokens=1..8 slots=20..27 prev=4 swa-evicted=4 priority=5 adopted session="s1"
//	set-device node=2 component=swa slots=1024..1027
//	resume-insert
//	end-insert
//	lock node=2 skip=mamba
//	unlock node=2 receipt=2:mamba:1
//
// Scripts use the same verbs with names in place of node numbers and more
// verbs on top; see [Story].
package ops
