# The candidate of a walk with session references gets a reference, so it moves
# to the front and stands before the walk's mark once more. Its value is dropped
# in place; the next candidate must not be the node itself (rules E-16, SR-20).
treecore-log 1 components=full,mamba page=1 grid=1 sessions
insert tokens=1..2 as=x
pin x as=p
ensure-session s1
walk-start mamba n=1
register s1 node=x
walk-next mamba
walk-next mamba
