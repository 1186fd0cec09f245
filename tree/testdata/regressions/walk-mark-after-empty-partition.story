# An SWA walk with session references lost its place when the last referenced
# node left its partition of the list.
treecore-log 1 components=full,swa,mamba page=64 window=130 grid=128 max-states=-1 eagle=false policy=tlru threshold=3 sessions
insert tokens=1000..1063,2000..2063 chunked as=n3
insert tokens=1000..1063,3000..3063,1000..1063,1000..1063,3000..3063,1000..1063 from=n3 swa-branch=448 adopted as=n22
ensure-session s1
insert tokens=1000..1063,3000..3063,1000..1063,1000..1063 adopted session=s2 as=n7
register s1 node=n22
insert tokens=1000..1063,3000..3063,1000..1063,3000..3063,1000..1063 swa-evicted=320 as=n19
evict-leaf n22
evict swa n=387
