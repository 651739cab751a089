package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

func checkProof(file, leaf []byte, keys []string) string {
	halves := strings.SplitN(string(file), "\n\n", 2)
	lines := strings.Split(halves[0], "\n")
	expect(lines[0] == "c2sp.org/tlog-proof@v1" && strings.HasPrefix(lines[1], "index "), "this is not a proof")
	var path []tlog.Hash
	for _, line := range lines[2:] {
		path = append(path, hash(line))
	}
	tree, names := signedTree([]byte(halves[1]), keys)
	check(tlog.CheckRecord(path, tree.N, tree.Hash, number(lines[1][len("index "):]), tlog.RecordHash(leaf)))
	return names
}

// The members of an archive, as a reader of tiles: c2sp.org/tlog-tiles leaves out the height, which is always 8.
type members map[string][]byte

func (m members) Height() int                     { return 8 }
func (m members) SaveTiles([]tlog.Tile, [][]byte) {}
func (m members) ReadTiles(tiles []tlog.Tile) (contents [][]byte, err error) {
	for _, tile := range tiles {
		content, found := m["tile/"+strings.TrimPrefix(tile.Path(), "tile/8/")]
		expect(found, "there is no tile "+tile.Path())
		contents = append(contents, content)
	}
	return contents, nil
}

func checkArchive(name string, keys []string) string {
	file, err := os.Open(name)
	check(err)
	defer file.Close()
	archive := members{}
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		check(err)
		archive[header.Name[strings.Index(header.Name, "/")+1:]], err = io.ReadAll(reader)
		check(err)
	}
	tree, names := signedTree(archive["checkpoint"], keys)
	leaves := bytes.Split(bytes.TrimSuffix(archive["events.jsonl"], []byte("\n")), []byte("\n"))
	var places []int64
	for _, leaf := range leaves {
		var event struct{ ID string }
		check(json.Unmarshal(leaf, &event))
		places = append(places, tlog.StoredHashIndex(0, number(event.ID)))
	}
	bound, err := tlog.TileHashReader(tree, archive).ReadHashes(places)
	check(err)
	for at, leaf := range leaves {
		expect(bound[at] == tlog.RecordHash(leaf), fmt.Sprintf("line %d is not what the tree has", at))
	}
	return fmt.Sprintf(" %d of %d%s", len(leaves), tree.N, names)
}
