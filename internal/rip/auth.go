package rip

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// Algorithm is an authentication algorithm.
type Algorithm uint8

// These are the algorithms. Password is the simple password of RFC 2453 §4.1, which every node on
// the link can read. Keyed-MD5 and the HMACs are those of RFC 4822.
const (
	Password Algorithm = iota
	KeyedMD5
	HMACSHA1
	HMACSHA256
	HMACSHA384
	HMACSHA512
	numAlgorithms
)

var algorithms = [numAlgorithms]struct {
	name string
	size int // size of the digest in bytes
	hash func() hash.Hash
}{
	Password:   {name: "password", size: passwordLen},
	KeyedMD5:   {"md5", md5.Size, md5.New},
	HMACSHA1:   {"hmac-sha1", sha1.Size, sha1.New},
	HMACSHA256: {"hmac-sha256", sha256.Size, sha256.New},
	HMACSHA384: {"hmac-sha384", sha512.Size384, sha512.New384},
	HMACSHA512: {"hmac-sha512", sha512.Size, sha512.New},
}

// String returns the algorithm's name in configuration files.
func (a Algorithm) String() string { return algorithms[a].name }

// Key is a shared secret.
type Key struct {
	ID        uint8 // identifies the key in messages; a password has no ID
	Algorithm Algorithm
	Secret    []byte
}

func validateKeys(keys []Key) error {
	seen := map[uint8]bool{}
	for _, k := range keys {
		switch {
		case k.Algorithm >= numAlgorithms:
			return fmt.Errorf("unknown algorithm %d", k.Algorithm)
		case len(k.Secret) == 0:
			return errors.New("the key has no secret")
		case (k.Algorithm == Password) != (keys[0].Algorithm == Password):
			return errors.New("a link cannot have both a password and a key")
		case len(k.Secret) > passwordLen && k.Algorithm <= KeyedMD5:
			return fmt.Errorf("secret of %d bytes: must be at most %d for %v",
				len(k.Secret), passwordLen, k.Algorithm)
		case k.Algorithm != Password && seen[k.ID]:
			return fmt.Errorf("duplicate key id %d", k.ID)
		}
		seen[k.ID] = true
	}
	return nil
}

const (
	familyAuth  = 0xffff
	passwordLen = 16
	authTrailer = 1 // type of the block that contains the digest
	authSimple  = 2 // password (RFC 2453 §4.1)
	authDigest  = 3 // digest (RFC 4822 §2.1)
	trailerLen  = 4 // length of the digest block's header
)

// overhead returns the size of the authentication trailer in bytes.
func (k *Key) overhead() int {
	if k.Algorithm == Password {
		return 0
	}
	return trailerLen + algorithms[k.Algorithm].size
}

// appendAuth appends the authentication entry, the first entry of a message. seal sets the
// trailer's offset in it.
func (k *Key) appendAuth(b []byte, sequence uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, familyAuth)
	if k.Algorithm == Password {
		b = binary.BigEndian.AppendUint16(b, authSimple)
		var secret [passwordLen]byte
		copy(secret[:], k.Secret)
		return append(b, secret[:]...)
	}
	b = binary.BigEndian.AppendUint16(b, authDigest)
	size := algorithms[k.Algorithm].size
	if k.Algorithm == KeyedMD5 {
		// RFC 4822 §2.1 does not say whether the length includes the four bytes of the trailer's
		// header. MD5 messages of older routers include them, and routers that check the length
		// accept this.
		size += trailerLen
	}
	b = append(b, 0, 0, k.ID, byte(size))
	b = binary.BigEndian.AppendUint32(b, sequence)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}

// seal sets the trailer's offset and appends the trailer.
func (k *Key) seal(b []byte) []byte {
	if k.Algorithm == Password {
		return b
	}
	binary.BigEndian.PutUint16(b[header2+4:], uint16(len(b)))
	b = binary.BigEndian.AppendUint16(b, familyAuth)
	b = binary.BigEndian.AppendUint16(b, authTrailer)
	return append(b, k.digest(b)...)
}

// digest returns the digest of a message that ends with the trailer's header.
func (k *Key) digest(b []byte) []byte {
	a := &algorithms[k.Algorithm]
	fill := make([]byte, a.size)
	if k.Algorithm == KeyedMD5 {
		// RFC 4822 §2: the secret, padded with zeros, replaces the digest in the computation.
		copy(fill, k.Secret)
		h := a.hash()
		h.Write(b)
		h.Write(fill)
		return h.Sum(nil)
	}
	// RFC 4822 §2.5: a secret longer than the digest is replaced by its digest, and Apad replaces
	// the digest in the computation.
	secret := k.Secret
	if len(secret) > a.size {
		h := a.hash()
		h.Write(secret)
		secret = h.Sum(nil)
	}
	for i := 0; i < len(fill); i += 4 {
		binary.BigEndian.PutUint32(fill[i:], 0x878fe1f3)
	}
	h := hmac.New(a.hash, secret)
	h.Write(b)
	h.Write(fill)
	return h.Sum(nil)
}

type authentication struct {
	key      *Key
	sequence uint32
}

// authenticate checks a message of version 2 with an interface's keys. It returns the message
// without the authentication entry and trailer. RFC 2453 §5.2: a router without authentication
// discards authenticated messages, and a router with authentication discards all others.
func authenticate(keys []Key, b []byte) (a authentication, body []byte, r Refusal) {
	kind := 0
	if len(b) >= header2+EntrySize2 && binary.BigEndian.Uint16(b[header2:]) == familyAuth {
		kind = int(binary.BigEndian.Uint16(b[header2+2:]))
	}
	switch {
	case kind == 0 && len(keys) == 0:
		return a, b[header2:], Accepted
	case kind == 0:
		return a, nil, RefusedNoAuth
	case len(keys) == 0:
		return a, nil, RefusedAuthUnexpected
	}
	want := authDigest
	if keys[0].Algorithm == Password {
		want = authSimple
	}
	switch {
	case kind != want:
		return a, nil, RefusedAuthType
	case kind == authSimple:
		return checkPassword(keys, b)
	}
	return checkDigest(keys, b)
}

func checkPassword(keys []Key, b []byte) (a authentication, body []byte, r Refusal) {
	given := b[header2+4 : header2+EntrySize2]
	for i := range keys {
		var secret [passwordLen]byte
		copy(secret[:], keys[i].Secret)
		if subtle.ConstantTimeCompare(secret[:], given) == 1 {
			a.key = &keys[i]
			return a, b[header2+EntrySize2:], Accepted
		}
	}
	return a, nil, RefusedPassword
}

// checkDigest checks the key and digest of a message (RFC 4822). The method checkSequence checks
// the sequence number.
func checkDigest(keys []Key, b []byte) (a authentication, body []byte, r Refusal) {
	offset := int(binary.BigEndian.Uint16(b[header2+4:]))
	id, size := b[header2+6], int(b[header2+7])
	a.sequence = binary.BigEndian.Uint32(b[header2+8:])
	for i := range keys {
		if keys[i].ID == id {
			a.key = &keys[i]
		}
	}
	if a.key == nil {
		return a, nil, RefusedKeyID
	}
	want := algorithms[a.key.Algorithm].size
	if size != want && size != want+trailerLen || offset < header2+EntrySize2 ||
		offset+trailerLen+want != len(b) ||
		binary.BigEndian.Uint32(b[offset:]) != familyAuth<<16|authTrailer {
		return a, nil, RefusedTrailer
	}
	given := b[offset+trailerLen:]
	if !hmac.Equal(a.key.digest(b[:offset+trailerLen]), given) {
		return a, nil, RefusedDigest
	}
	return a, b[header2+EntrySize2 : offset], Accepted
}

// ParseAlgorithm returns the algorithm with this name.
func ParseAlgorithm(name string) (Algorithm, bool) {
	for i := range algorithms {
		if algorithms[i].name == name {
			return Algorithm(i), true
		}
	}
	return 0, false
}
