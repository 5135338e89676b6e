package adapters

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internet"
)

// postgres is a database with one table of integers, which survives crashes. It implements
// PostgreSQL's simple query protocol with begin, commit, rollback, insert and select.
type postgres struct {
	mu   sync.Mutex
	rows []int64
}

func (p *postgres) run(h *internet.Host) { accept(h, 5432, p.serve) }

func (p *postgres) serve(c net.Conn) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	b.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	var pending []int64 // rows of the open transaction
	status := byte('I')
	for b.Flush() == nil {
		message, err := b.Receive()
		if err != nil {
			return
		}
		q, ok := message.(*pgproto3.Query)
		if !ok {
			return
		}
		tag := "SELECT 0"
		switch verb, rest, _ := strings.Cut(strings.TrimSpace(q.String), " "); verb {
		case "begin":
			tag, status = "BEGIN", 'T'
		case "commit":
			p.mu.Lock()
			p.rows = append(p.rows, pending...)
			p.mu.Unlock()
			tag, status, pending = "COMMIT", 'I', nil
		case "rollback":
			tag, status, pending = "ROLLBACK", 'I', nil
		case "insert":
			n, err := strconv.ParseInt(strings.Trim(rest, " '"), 10, 64)
			if err != nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "22P02", Message: err.Error()})
				break
			}
			tag, pending = "INSERT 0 1", append(pending, n)
		case "select":
			tag = p.answer(b)
		}
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: status})
	}
}

// answer sends the rows.
func (p *postgres) answer(b *pgproto3.Backend) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{
		Name: []byte("n"), DataTypeOID: 20, DataTypeSize: 8, TypeModifier: -1,
	}}})
	for _, n := range p.rows {
		b.Send(&pgproto3.DataRow{Values: [][]byte{strconv.AppendInt(nil, n, 10)}})
	}
	return fmt.Sprintf("SELECT %d", len(p.rows))
}

// database connects a database/sql pool to the server.
func database(t *testing.T, h *internet.Host) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig("host=server user=tide sslmode=disable connect_timeout=5")
	require.NoError(t, err)
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.DialFunc = h.DialContext
	config.LookupFunc = func(_ context.Context, host string) ([]string, error) {
		return []string{host}, nil
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(4)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db
}

// insert adds a row in a separate transaction.
func insert(ctx context.Context, db *sql.DB, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // sql.ErrTxDone after Commit
	if _, err := tx.ExecContext(ctx, "insert $1", n); err != nil {
		return err
	}
	return tx.Commit()
}

// Clients commit transactions while the server crashes and restarts. The table has every row whose
// commit was acknowledged, and no row twice.
func TestSQL(t *testing.T) {
	internet.Test(t, lossy, func(t *testing.T, w *internet.World) {
		table := new(postgres)
		w.Host("server").Go(table.run)
		db := database(t, w.Host("client"))
		w.At(10*time.Second, w.Host("server").Crash)
		w.At(20*time.Second, func() { w.Host("server").Restart(nil) })
		committed, failed := insertRows(t.Context(), db, time.Minute)
		assert.Positive(t, failed)
		assert.Greater(t, len(committed), 500)
		checkRows(t, db, committed)
		t.Logf("%d transactions committed, %d failed", len(committed), failed)
	})
}

// insertRows inserts rows for a time, with four goroutines.
func insertRows(
	ctx context.Context, db *sql.DB, lasts time.Duration,
) (committed map[int64]bool, failed int) {
	committed = map[int64]bool{}
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range int64(4) {
		all.Go(func() {
			for n := worker; time.Since(began) < lasts; n += 4 {
				err := insert(ctx, db, n)
				mu.Lock()
				if committed[n] = err == nil; err != nil {
					failed++
					delete(committed, n)
				}
				mu.Unlock()
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return committed, failed
}

// checkRows compares the table with the rows whose commit was acknowledged.
func checkRows(t *testing.T, db *sql.DB, committed map[int64]bool) {
	t.Helper()
	rows, err := db.QueryContext(within(t, time.Minute), "select")
	require.NoError(t, err)
	defer rows.Close()
	seen := map[int64]bool{}
	for rows.Next() {
		var n int64
		require.NoError(t, rows.Scan(&n))
		assert.False(t, seen[n], "row %d is there twice", n)
		seen[n] = true
	}
	require.NoError(t, rows.Err())
	for n := range committed {
		assert.True(t, seen[n], "row %d was committed and is lost", n)
	}
}
