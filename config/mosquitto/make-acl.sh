#!/bin/sh
# Writes the access list of a casino's broker: one identity per table, per post, for the mirror and for the desk.
#
#     make-acl.sh SITE TABLE:POSTS... >acl        for example: make-acl.sh casino.example t07:8 t08:8 >acl
#
# An identity is the common name of a client's certificate (make-certificates.sh). A table is called as its topic level
# says (t07), a post by its table and number (t07-p03).
#
# Every right is written out, and no "pattern" line is used, for two reasons. %u stands for a whole topic level, so a
# pattern cannot take t07-p03 apart into table t07 and post 3. And a pattern holds for everybody: the line that lets a
# table write .../table/%u/up/# would let a post, the mirror and the desk speak as tables of their own names.
#
# What is not written here is refused: a broker with an access list permits nothing else.
set -eu

name='^[A-Za-z0-9][A-Za-z0-9._-]*$'

fail() {
    echo "make-acl.sh: $1" >&2
    echo "usage: make-acl.sh SITE TABLE:POSTS..." >&2
    exit 2
}

[ $# -ge 2 ] || fail "a site and at least one table are needed"
site=$1
shift
printf '%s\n' "$site" | grep -Eq "$name" || fail "'$site' cannot be a site's topic level"

seen=' mirror witness desk '
for entry in "$@"; do
    table=${entry%:*}
    printf '%s\n' "$entry" | grep -Eq ':[1-9][0-9]{0,2}$' || fail "'$entry' is not TABLE:POSTS, with 1 to 999 posts"
    printf '%s\n' "$table" | grep -Eq "$name" || fail "'$table' cannot be a table's topic level"
    printf '%s\n' "$table" | grep -Eq -- '-p[0-9]+$' && fail "'$table' reads like the name of a post"
    case $seen in *" $table "*) fail "'$table' is taken" ;; esac
    seen="$seen$table "
done

cat <<END
# Written by make-acl.sh $site $*
# Do not edit: run it again. mosquitto reads it anew on SIGHUP.

# The central mirror: hears every table, acknowledges, asks for replays, gives entries back. It cannot give orders. It
# hears its own acknowledgements: what it once said binds it, even when its store was restored from a backup.
user mirror
topic read casino/v1/$site/table/+/up/#
topic readwrite casino/v1/$site/table/+/down/ack
topic write casino/v1/$site/table/+/down/replay
topic write casino/v1/$site/table/+/down/entry

# A second witness, on another machine with another key: hears every table, says what it has seen.
user witness
topic read casino/v1/$site/table/+/up/#
topic readwrite casino/v1/$site/table/+/down/witness/witness
topic write casino/v1/$site/table/+/down/replay

# The desk that passes on signed orders. The signature, not the desk, is what a table obeys.
user desk
topic read casino/v1/$site/table/+/up/#
topic write casino/v1/$site/table/+/down/command
END

for entry in "$@"; do
    table=${entry%:*}
    posts=${entry##*:}
    root="casino/v1/$site/table/$table"
    cat <<END

# Table $table. What it published itself, and the broker kept, shows it at a start whether its disk went back in time.
user $table
topic write $root/up/#
topic readwrite $root/up/checkpoint
topic read $root/down/#
topic read $root/post/+/in
topic write $root/post/+/out
END
    post=1
    while [ "$post" -le "$posts" ]; do
        printf '\nuser %s-p%02d\n' "$table" "$post"
        printf 'topic write %s/post/%d/in\n' "$root" "$post"
        printf 'topic read %s/post/%d/out\n' "$root" "$post"
        printf 'topic read %s/up/display\n' "$root"
        post=$((post + 1))
    done
done
