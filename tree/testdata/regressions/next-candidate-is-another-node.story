# A deletion takes references away and gives them back, so that the candidate of a
# walk stands in front of the walk's mark once more. The next candidate must be
# another node, or the walk ends before those whose references then go (rules E-9,
# SR-15, SR-20).
treecore-log 1 components=full,swa page=1 window=9 grid=0 max-states=0 eagle=true policy=tlru threshold=3 sessions
match tokens=2..3,3*2,2..3,1*2,3*2,2,1..2,1..2 explain as=n22
insert tokens=1,3 adopted as=n0
insert tokens=3,1,3,1..3,1*3,2*2,3*2,1..3,2 from=n22 swa-evicted=7 priority=2 adopted hold as=n1
evict swa n=3
open-session s2
insert tokens=3*3,1..2,1,3,1*2,2*2,1*3,3,2,1..2,2*2 swa-evicted=10 as=n6
insert tokens=3,1,3,1..3,1*3,2*2,1 swa-evicted=2 adopted as=n7
insert tokens=2..3,3*2,2,1,3,2..3,2..3,2*3,1..3,1*2 from=n0 adopted as=n17
register s2 node=n7
evict swa n=5
insert tokens=3*2,1,3,2,1 swa-evicted=1 session=s0 as=n1
match tokens=3,1,3,1..3,1*3,2..3,3,2,1 explain
evict full n=30
insert tokens=2,1*2,2*3,1,3*3,1,3*2,2*2 extra="" salt="b" adopted stop-after=1 as=n1
insert tokens=3,1,3,1..3,1*3,2*2,3,2..3,2 as=n2
evict full n=3
insert tokens=1,3*3,1..2 swa-branch=4 chunked priority=2 adopted as=n5
evict swa n=3
evict swa n=8
insert tokens=3*2,1,3,2,1*2 from=n1 priority=-2 adopted hold as=n9
evict full n=3
insert tokens=2,1*2,2 adopted session=s0 as=n12
insert tokens=3,1,3,1,3*3,1 swa-evicted=9 stop-after=1 as=n13
evict swa n=7
evict swa n=7
