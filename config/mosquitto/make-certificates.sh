#!/bin/sh
# Makes the certificates of a test casino: an authority, the broker's certificate, and one per client.
#
#     make-certificates.sh FOLDER BROKER NAME...
#
# BROKER is the broker's address, a name or an IPv4 address, as the clients will call it. Each NAME is an identity of the
# access list: t07, t07-p01, mirror, desk. What is there already is kept, so that names can be added later.
#
# A real casino keeps its authority's key (FOLDER/ca.key) off the network, and makes each client's key where it is used.
# Table and post identities are asked for anew each year: see DAYS.
set -eu
umask 077

DAYS=397
AUTHORITY_DAYS=3650

fail() {
    echo "make-certificates.sh: $1" >&2
    echo "usage: make-certificates.sh FOLDER BROKER NAME..." >&2
    exit 2
}

[ $# -ge 3 ] || fail "a folder, the broker's address and at least one name are needed"
folder=$1
broker=$2
shift 2
for name in "$@"; do
    printf '%s\n' "$name" | grep -Eq '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' || fail "'$name' cannot be an identity"
    case $name in ca | broker) fail "'$name' is taken" ;; esac
done
mkdir -p "$folder"

# key FILE: a new private key, on the curve P-256, which every TLS 1.3 library has.
key() {
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null
}

# issue NAME EXTENSIONS: a certificate for NAME, signed by the authority.
issue() {
    [ -e "$folder/$1.crt" ] && return
    key "$folder/$1.key"
    printf '%s\n' "basicConstraints=critical,CA:FALSE" "keyUsage=critical,digitalSignature" "$2" >"$folder/$1.ext"
    openssl req -new -key "$folder/$1.key" -subj "/O=Test casino/CN=$1" -out "$folder/$1.csr"
    openssl x509 -req -in "$folder/$1.csr" -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial \
        -days "$DAYS" -extfile "$folder/$1.ext" -out "$folder/$1.crt" 2>/dev/null
    rm "$folder/$1.csr" "$folder/$1.ext"
}

if [ ! -e "$folder/ca.crt" ]; then
    key "$folder/ca.key"
    openssl req -x509 -new -key "$folder/ca.key" -days "$AUTHORITY_DAYS" -subj "/O=Test casino/CN=Authority" \
        -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
        -out "$folder/ca.crt"
fi

if printf '%s\n' "$broker" | grep -Eq '^[0-9]+(\.[0-9]+){3}$'; then
    issue broker "extendedKeyUsage=serverAuth
subjectAltName=IP:$broker"
else
    issue broker "extendedKeyUsage=serverAuth
subjectAltName=DNS:$broker"
fi

for name in "$@"; do
    issue "$name" "extendedKeyUsage=clientAuth"
done
