# A leaf that was no leaf when the Full walk came to it is dropped from the walk
# and does not come back when it is unlocked (rule E-13).
treecore-log 1 components=full page=1
insert tokens=1..4 as=A
walk-start full n=4
pin A as=p
walk-next full
unpin p
walk-next full
