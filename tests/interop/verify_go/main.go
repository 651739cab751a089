// What the controller signs and proves, judged by the reference packages of the Go project (golang.org/x/mod/sumdb).
//
// One case on each line of standard input, its verdict on a line of standard output, "ok …" or "refused: …":
//
//	note NOTE KEY...                                 a signed note by these keys; the verdict names who signed
//	record ROOT SIZE INDEX LEAF HASHES               an inclusion proof
//	tree NEW-ROOT NEW-SIZE OLD-ROOT OLD-SIZE HASHES  a consistency proof
//	proof PROOF LEAF KEY...                          a c2sp.org/tlog-proof file
//	archive FILE KEY...                              the archive of a séance: each entry, through its tiles, to the root
//
// Notes, roots, leaves, hashes (one after the other) and proofs are base64, and "-" where they are empty.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(right bool, otherwise string) {
	if !right {
		panic(otherwise)
	}
}

func data(text string) []byte {
	decoded, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(text, "-"))
	check(err)
	return decoded
}

func number(text string) int64 {
	value, err := strconv.ParseInt(text, 10, 64)
	check(err)
	return value
}

func hash(text string) (h tlog.Hash) {
	expect(copy(h[:], data(text)) == tlog.HashSize, "a hash has 32 bytes")
	return h
}

func hashes(text string) (all []tlog.Hash) {
	for bytes := data(text); len(bytes) > 0; bytes = bytes[tlog.HashSize:] {
		all = append(all, hash(base64.StdEncoding.EncodeToString(bytes[:tlog.HashSize])))
	}
	return all
}

// A key of type 4 (c2sp.org/tlog-cosignature), which the note package leaves to its callers.
type cosigner struct {
	name string
	id   uint32
	key  ed25519.PublicKey
}

func (c cosigner) Name() string    { return c.name }
func (c cosigner) KeyHash() uint32 { return c.id }
func (c cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	header := fmt.Sprintf("cosignature/v1\ntime %d\n", binary.BigEndian.Uint64(signature))
	return ed25519.Verify(c.key, append([]byte(header), text...), signature[8:])
}

func verifier(vkey string) note.Verifier {
	parts := strings.SplitN(vkey, "+", 3)
	material := data(parts[2])
	if material[0] != 4 {
		known, err := note.NewVerifier(vkey)
		check(err)
		return known
	}
	digest := sha256.Sum256(append([]byte(parts[0]+"\n"), material...))
	expect(fmt.Sprintf("%x", digest[:4]) == parts[1] && len(material) == 33, "the identifier is not that of the key")
	return cosigner{parts[0], binary.BigEndian.Uint32(digest[:4]), material[1:]}
}

func open(message []byte, keys []string) *note.Note {
	var known []note.Verifier
	for _, key := range keys {
		known = append(known, verifier(key))
	}
	opened, err := note.Open(message, note.VerifierList(known...))
	check(err)
	return opened
}

func signedTree(message []byte, keys []string) (tlog.Tree, string) {
	opened := open(message, keys)
	lines := strings.Split(opened.Text, "\n")
	expect(len(lines) == 4 && opened.Sigs[0].Name == lines[0], "this is not a log's checkpoint")
	return tlog.Tree{N: number(lines[1]), Hash: hash(lines[2])}, signers(opened)
}

func signers(opened *note.Note) (names string) {
	for _, signature := range opened.Sigs {
		names += " " + signature.Name
	}
	return names
}

func judge(words []string) (verdict string) {
	defer func() {
		if why := recover(); why != nil {
			verdict = strings.ReplaceAll(fmt.Sprint("refused: ", why), "\n", " ")
		}
	}()
	switch words[0] {
	case "note":
		return "ok" + signers(open(data(words[1]), words[2:]))
	case "record":
		leaf := tlog.RecordHash(data(words[4]))
		check(tlog.CheckRecord(hashes(words[5]), number(words[2]), hash(words[1]), number(words[3]), leaf))
		return "ok"
	case "tree":
		check(tlog.CheckTree(hashes(words[5]), number(words[2]), hash(words[1]), number(words[4]), hash(words[3])))
		return "ok"
	case "proof":
		return "ok" + checkProof(data(words[1]), data(words[2]), words[3:])
	case "archive":
		return "ok" + checkArchive(words[1], words[2:])
	}
	panic("there is no case " + words[0])
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
		fmt.Fprintln(out, judge(strings.Fields(line)))
	}
}
