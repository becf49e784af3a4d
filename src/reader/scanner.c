#include "reader/scanner.h"

char vv_scanner_look(struct vv_scanner *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
	return s->p < s->end ? *s->p : 0;
}

bool vv_scanner_accept(struct vv_scanner *s, char c)
{
	if (s->bad || vv_scanner_look(s) != c || s->p == s->end)
		return false;
	s->p++;
	return true;
}

void vv_scanner_expect(struct vv_scanner *s, char c)
{
	if (!vv_scanner_accept(s, c))
		s->bad = true;
}

uint64_t vv_scanner_number(struct vv_scanner *s)
{
	char c = vv_scanner_look(s);
	uint64_t v = 0;

	s->bad = s->bad || c < '0' || c > '9';
	for (; !s->bad && s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
		s->bad = __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s->p - '0'), &v);
	return s->bad ? 0 : v;
}
