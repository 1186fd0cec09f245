# A leaf that a session kept when a walk of states paused at it, and that nobody
# keeps when the walk goes on, loses its state only.
treecore-log 1 components=full,mamba page=1 window=0 grid=1 max-states=-1 eagle=false policy=lru sessions
switches host-tier write-back write-through-threshold=2
host-pools
insert tokens=1..2 as=A
insert tokens=1..4 from=A as=B
backup B
ack
demote B
open-session s
register s node=B
walk-start mamba n=1
walk-next mamba leave
release-session s
finish-pause mamba no-backup
check
