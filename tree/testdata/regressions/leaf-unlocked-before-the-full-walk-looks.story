# A leaf that was locked and unlocked before the Full walk came to it is a
# candidate still; one that was locked at the start is not (rules E-12, E-13).
treecore-log 1 components=full page=1
insert tokens=1..4 as=A
insert tokens=11..14 as=B
lock B as=r
walk-start full n=8
pin A as=p
unpin p
unlock r
walk-next full
walk-next full
