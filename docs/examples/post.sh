#!/bin/sh
# A post by hand. Type one request a line; answers, news and the public board scroll by. End with Ctrl-D.
#
#     docs/examples/post.sh HOST PORT TABLE POST
#
# TABLE is the root of the table's topics, for example casino/v1/casino.example/table/t07. On a casino's broker add the
# post's own certificate to both commands: --cafile, --cert, --key.
set -eu
host=$1 port=$2 table=$3 post=$4

mosquitto_sub -V 5 -q 1 -h "$host" -p "$port" -F '%t %p' -t "$table/post/$post/out" -t "$table/up/display" &
trap 'kill $!' EXIT
mosquitto_pub -V 5 -q 1 -h "$host" -p "$port" -t "$table/post/$post/in" -l
