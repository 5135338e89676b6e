package diagnostic

import "strings"

// maxSuggestDistance is the maximum distance of a suggestion.
const maxSuggestDistance = 2

// DidYouMean returns " (did you mean …?)" if a candidate is similar to the typed word, and
// otherwise nothing.
func DidYouMean(typed string, candidates []string) string {
	best, bestDistance := "", maxSuggestDistance+1
	for _, c := range candidates {
		d := distance(strings.ToLower(typed), strings.ToLower(c))
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// Near lists the candidates nearest to the typed word. A word of three letters may have one typo, a
// word of six letters two. If no candidate is near, it lists those with the word as a prefix.
func Near(typed string, candidates []string) (near []string) {
	least := min(len(typed)/3, maxSuggestDistance)
	for _, c := range candidates {
		d := distance(strings.ToLower(typed), strings.ToLower(c))
		if d < least {
			least, near = d, nil
		}
		if d == least && d > 0 {
			near = append(near, c)
		}
	}
	if len(near) > 0 || typed == "" {
		return near
	}
	for _, c := range candidates {
		if strings.HasPrefix(c, typed) {
			near = append(near, c)
		}
	}
	return near
}

// distance returns how many letters must be inserted, removed, changed or swapped to turn a into b,
// or a number above maxSuggestDistance.
func distance(a, b string) int {
	if len(a)-len(b) > maxSuggestDistance || len(b)-len(a) > maxSuggestDistance {
		return maxSuggestDistance + 1
	}
	above := make([]int, len(b)+1) // the row before the previous one
	last := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], above[j-2]+1)
			}
		}
		above, last, row = last, row, above
	}
	return last[len(b)]
}

// OneOf joins words to "a, b or c".
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
