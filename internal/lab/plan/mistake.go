package plan

// Mistake is a mistake that whoever plays the file has found: in a flow, at the key that is to
// blame or else where it begins; a negative flow: in all of them.
func (f *File) Mistake(cell *Cell, flow int, key, msg, want string) error {
	r := &report{}
	at := f.root.get("flows")
	if at == nil {
		at = f.root
	}
	if flow >= 0 && flow < len(cell.Flows) && cell.Flows[flow].Item < len(at.items) {
		at = at.items[cell.Flows[flow].Item]
		if n := at.get(key); n != nil {
			at = n
		}
	}
	if len(cell.Set) > 0 {
		for i, s := range cell.Set {
			msg += []string{", where ", " and "}[min(i, 1)] + s.Key + " is " + s.Value
		}
	}
	r.add(at.place, msg, want)
	return r.err()
}
