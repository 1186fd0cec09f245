# A leaf without a host copy of Full, whose window is on the host only, is
# deleted: what counts as freed is what left the device (rules EV-2, EV-6).
treecore-log 1 components=full,swa page=1 window=9 grid=0 max-states=0 eagle=true policy=tlru threshold=3 sessions
switches host-tier swa-host-pool write-back write-through-threshold=1
insert tokens=3,2..3,1,3,1..2,1,3,1..3,3,2*2 extra="a" swa-branch=11 adopted as=n2
evict swa n=6
