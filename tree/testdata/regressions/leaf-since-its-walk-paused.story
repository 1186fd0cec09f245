# A node that was pinned when a walk of states paused at it, and a leaf when the
# walk went on, loses its state only.
treecore-log 1 components=full,mamba page=1 window=0 grid=1 max-states=-1 eagle=false policy=lru
switches host-tier write-back write-through-threshold=2
insert tokens=1..2 as=A
pin A as=p
walk-start mamba n=1
walk-next mamba leave
unpin p
finish-pause mamba no-backup
check
