"""The README of an archive, version 1: how to check it without our program, in French and in English.

It is part of the format. An archive with another README is not of version 1, so a change of these words would be
version 2, and version 1 would stay readable. A test does with the shell what is written here.
"""

README = """\
table-controller/archive/v1

FRANÇAIS (English below)

Ce dossier contient une partie du journal certifié d'une table : une séance, ou tout le journal. Chaque écriture y est
telle que la table l'a signée. Pour la vérifier il ne faut que la clé publique de la table, reçue d'ailleurs : ce qui se
trouve dans le dossier ne prouve rien sur la clé elle-même.

FICHIERS
  events.jsonl       les écritures, une par ligne, octet pour octet ; "id" est leur numéro dans le journal
  checkpoint         origine, nombre d'écritures, racine de l'arbre ; puis une ligne par signature : la table, et les
                     témoins qui ont contresigné (c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature)
  checkpoints/N      les points de contrôle gardés pendant la séance, pour N écritures
  policy             les clés qui ont signé ici (c2sp.org/tlog-policy) : à comparer avec celles tenues d'ailleurs
  tile/…             l'arbre et les écritures (c2sp.org/tlog-tiles, RFC 6962) : ce qu'il faut pour prouver chacune
  seance.txt         le procès-verbal de la séance, s'il a été établi
  statement.note     la déclaration signée de ce procès-verbal : table, membre du comité de direction, caissier

AVEC NOTRE PROGRAMME
  tablectl journal verify ARCHIVE.tar --vkey CLÉ         ou --policy FICHIER
  Statut de fin : 0 tout concorde ; 1 altéré ; 2 écritures perdues ou deux histoires ; 3 pas signé, ou clé inconnue ;
  4 incomplet ; 5 illisible.

SANS NOTRE PROGRAMME
  1. La signature de la table (openssl 3 ; KEY est le texte nom+identifiant+base64 de la clé publique), sur la première
     ligne de signatures (la cinquième du fichier), ou sur la suivante si deux clés de la table ont signé :
       head -n 3 checkpoint > text
       sed -n 5p checkpoint | cut -d ' ' -f 3 | base64 -d | tail -c 64 > signature
       (printf '\\060\\052\\060\\005\\006\\003\\053\\145\\160\\003\\041\\000'
        echo "$KEY" | cut -d + -f 3- | base64 -d | tail -c 32) > key.der
       openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in text -sigfile signature
     La contre-signature d'un témoin, une ligne plus bas, porte 8 octets d'heure avant ses 64 octets. Ce qui est signé :
       sed -n 6p checkpoint | cut -d ' ' -f 3 | base64 -d | tail -c 72 > stamped
       time=$((0x$(head -c 8 stamped | od -An -v -tx1 | tr -d ' ')))
       (printf 'cosignature/v1\\ntime %s\\n' "$time"; head -n 3 checkpoint) > text
       tail -c 64 stamped > signature
     puis key.der et openssl comme ci-dessus, avec la clé du témoin.
  2. L'empreinte d'une écriture (ici la première ligne) est SHA-256 d'un octet nul suivi de la ligne :
       (printf '\\000'; sed -n 1p events.jsonl | tr -d '\\n') | sha256sum
     L'écriture n° I est l'empreinte I mod 256 (à partir de 0) de la tuile tile/0/N, où N = I div 256 (et N.p/L quand
     la tuile n'a encore que L empreintes) :
       od -An -v -tx1 -w32 tile/0/000 | tr -d ' '
  3. Deux empreintes voisines donnent celle au-dessus : SHA-256 d'un octet 01, de la gauche et de la droite (RFC 6962,
     2.1). Huit étages au-dessus d'une tuile pleine de 256 empreintes est une empreinte de la tuile du niveau suivant.
     Les tuiles du bord droit (les dernières de chaque niveau) donnent la racine, troisième ligne de checkpoint.
  4. Tout autre programme pour ces formats convient : golang.org/x/mod/sumdb/note et tlog (Go), pymerkle (Python).
  5. Le procès-verbal : sha256sum seance.txt donne l'empreinte écrite dans statement.note, ligne « etat ».

ENGLISH

This folder holds a part of a table's certified journal: one séance, or the whole of it. Each entry is as the table
signed it. All that is needed to check it is the table's public key, received from elsewhere: what lies in the folder
proves nothing about the key itself.

FILES
  events.jsonl       the entries, one on each line, byte for byte; "id" is their number in the journal
  checkpoint         origin, number of entries, root of the tree; then one line for each signature: the table's, and
                     those of the witnesses that cosigned (c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature)
  checkpoints/N      the checkpoints that were kept during the séance, for N entries
  policy             the keys that signed here (c2sp.org/tlog-policy): compare them with those you hold from elsewhere
  tile/…             the tree and the entries (c2sp.org/tlog-tiles, RFC 6962): what it takes to prove each of them
  seance.txt         the report of the séance, if one was made
  statement.note     the signed statement about that report: table, director, cashier

WITH OUR PROGRAM
  tablectl journal verify ARCHIVE.tar --vkey KEY         or --policy FILE
  Exit status: 0 all agrees; 1 altered; 2 entries lost, or two histories; 3 not signed, or by an unknown key;
  4 incomplete; 5 unreadable.

WITHOUT OUR PROGRAM
  1. The table's signature (openssl 3; KEY is the text name+identifier+base64 of the public key):
     the commands of FRANÇAIS, 1, on the first line of signatures (the fifth of the file), or on the next one when two
     keys of the table signed. A witness's cosignature, one line below, has 8 bytes of time before its 64 bytes.
  2. The hash of an entry (here of the first line) is SHA-256 of a zero byte and the line; entry I is hash I mod 256
     (from 0) of tile tile/0/N, where N = I div 256 (N.p/L while the tile has L hashes only): see FRANÇAIS, 2.
  3. Two neighbours give the hash above them: SHA-256 of a byte 01, the left and the right one (RFC 6962, 2.1). Eight
     levels above a full tile of 256 hashes is one hash of a tile of the next level. The tiles of the right edge (the
     last of each level) give the root, the third line of checkpoint.
  4. Any other program for these formats will do: golang.org/x/mod/sumdb/note and tlog (Go), pymerkle (Python).
  5. The report: sha256sum seance.txt gives the digest that statement.note has in its line "etat".
"""
