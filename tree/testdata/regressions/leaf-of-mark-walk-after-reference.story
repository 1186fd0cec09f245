# The same where the candidate is a leaf and is kept: it was returned once, and
# the walk goes on behind its mark.
treecore-log 1 components=full,mamba page=1 grid=1 sessions
insert tokens=1..2 as=x
insert tokens=11..12 as=y
ensure-session s1
walk-start mamba n=9
register s1 node=x
walk-next mamba keep
walk-next mamba keep
walk-next mamba keep
