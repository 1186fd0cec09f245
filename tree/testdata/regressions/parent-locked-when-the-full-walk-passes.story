# A parent that became a candidate is locked while the walk takes a victim that
# comes before it. It is no victim then, but has not been passed either: once
# unlocked it is one (rule E-13).
treecore-log 1 components=full page=1 policy=lfu
insert tokens=1..4 as=A
insert tokens=1..4
insert tokens=1..4
insert tokens=1..8 as=B
insert tokens=11..14 as=C
insert tokens=11..14
insert tokens=21..24 as=D
insert tokens=21..24
insert tokens=21..24
insert tokens=31..34 as=E
insert tokens=31..34
insert tokens=31..34
insert tokens=31..34
insert tokens=31..34
walk-start full n=100
walk-next full
walk-next full
pin A as=p
walk-next full
unpin p
walk-next full
walk-next full
