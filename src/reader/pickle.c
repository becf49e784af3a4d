/* The opcodes are those of Python's Lib/pickletools.py. Every value comes from an opcode, so their
 * number is bounded by the bytes read. */
#include "reader/pickle.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/peek.h"
#include <string.h>

enum {
	MOST = 1 << 20, /* values, and cells */
	KEYS = 64,      /* of a dictionary, that a lookup compares */
};

enum action { /* of an opcode, after its argument was read */
	NOTHING, STOP, MARK, POP, POP_MARK, DUP, OTHER, NUMBER, TEXT, GLOBAL, GLOBAL_OF_STACK, STORED, STORED_OF_STACK,
	EMPTY_LIST, EMPTY_DICT, MARKED_LIST, MARKED_DICT, TUPLE1, TUPLE2, TUPLE3, ADD_ONE, ADD_MARKED, SET_ONE, SET_MARKED,
	CALL, CALL_KEYWORDS, CALL_MARKED, CALL_NAMED, STATE, GET, PUT, MEMOIZE,
};

enum argument {
	NONE,
	BYTES1, BYTES2, BYTES4, BYTES8,      /* a number of so many bytes */
	SIGNED4,
	COUNTED1, COUNTED4, COUNTED8,        /* so many bytes after their number */
	LINE, LINES2,                        /* text to the end of the line */
};

static const struct pickle_opcode {
	uint8_t code, argument, action;
} opcodes[] = {
	{ 0x80, BYTES1, NOTHING }, { 0x95, BYTES8, NOTHING }, { '.', NONE, STOP }, { '(', NONE, MARK }, { '0', NONE, POP },
	{ '1', NONE, POP_MARK }, { '2', NONE, DUP }, { 'N', NONE, OTHER }, { 0x88, NONE, OTHER }, { 0x89, NONE, OTHER },
	{ 'F', LINE, OTHER }, { 'G', BYTES8, OTHER }, { 'B', COUNTED4, OTHER }, { 'C', COUNTED1, OTHER }, { 0x8e, COUNTED8, OTHER },
	{ 0x96, COUNTED8, OTHER }, { 0x97, NONE, OTHER }, { 0x98, NONE, NOTHING }, { 0x8b, COUNTED4, OTHER },
	{ 0x82, BYTES1, OTHER }, { 0x83, BYTES2, OTHER }, { 0x84, BYTES4, OTHER },
	{ 'I', LINE, NUMBER }, { 'L', LINE, NUMBER }, { 'J', SIGNED4, NUMBER }, { 'K', BYTES1, NUMBER }, { 'M', BYTES2, NUMBER },
	{ 0x8a, COUNTED1, NUMBER },
	{ 'S', LINE, TEXT }, { 'V', LINE, TEXT }, { 'T', COUNTED4, TEXT }, { 'U', COUNTED1, TEXT }, { 'X', COUNTED4, TEXT },
	{ 0x8c, COUNTED1, TEXT }, { 0x8d, COUNTED8, TEXT },
	{ 'c', LINES2, GLOBAL }, { 0x93, NONE, GLOBAL_OF_STACK }, { 'P', LINE, STORED }, { 'Q', NONE, STORED_OF_STACK },
	{ ']', NONE, EMPTY_LIST }, { ')', NONE, EMPTY_LIST }, { 0x8f, NONE, EMPTY_LIST }, { '}', NONE, EMPTY_DICT },
	{ 'l', NONE, MARKED_LIST }, { 't', NONE, MARKED_LIST }, { 0x91, NONE, MARKED_LIST }, { 'd', NONE, MARKED_DICT },
	{ 0x85, NONE, TUPLE1 }, { 0x86, NONE, TUPLE2 }, { 0x87, NONE, TUPLE3 },
	{ 'a', NONE, ADD_ONE }, { 'e', NONE, ADD_MARKED }, { 0x90, NONE, ADD_MARKED }, { 's', NONE, SET_ONE }, { 'u', NONE, SET_MARKED },
	{ 'R', NONE, CALL }, { 0x81, NONE, CALL }, { 0x92, NONE, CALL_KEYWORDS }, { 'o', NONE, CALL_MARKED }, { 'i', LINES2, CALL_NAMED },
	{ 'b', NONE, STATE },
	{ 'g', LINE, GET }, { 'h', BYTES1, GET }, { 'j', BYTES4, GET }, { 'p', LINE, PUT }, { 'q', BYTES1, PUT }, { 'r', BYTES4, PUT },
	{ 0x94, NONE, MEMOIZE },
};

struct pickle_machine {
	const uint8_t *p, *end;
	struct vv_pickle *out;
	uint32_t *stack, *memo;
	size_t n_stack, stack_cap, n_memo, memo_cap;
	uint64_t number; /* the argument, */
	const char *text;
	size_t len;
	bool bad, stopped;
	int rc;
};

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t new_value(struct pickle_machine *m, unsigned kind)
{
	struct vv_pickle *o = m->out;

	m->bad = m->bad || o->n_values == MOST;
	if (m->bad)
		return 0;
	m->rc = vv_mem_room(&o->value, o->n_values, &o->values_cap, sizeof(*o->value));
	m->bad = m->rc != 0;
	if (m->bad)
		return 0;
	o->value[o->n_values] = (struct vv_pickle_value){ .kind = (uint8_t)kind };
	return (uint32_t)o->n_values++;
}

static uint32_t new_text(struct pickle_machine *m, unsigned kind)
{
	uint32_t v = new_value(m, kind);

	if (v) {
		m->out->value[v].text = m->text;
		m->out->value[v].n = (uint32_t)m->len;
	}
	return v;
}

static bool has_elements(const struct vv_pickle *p, uint32_t v)
{
	return p->value[v].kind >= VV_PICKLE_LIST;
}

static void append(struct pickle_machine *m, uint32_t to, uint32_t v)
{
	struct vv_pickle *o = m->out;
	struct vv_pickle_value *list = &o->value[to];
	uint32_t cell = (uint32_t)o->n_cells;

	m->bad = m->bad || o->n_cells == MOST || !has_elements(o, to);
	if (m->bad)
		return;
	m->rc = vv_mem_room(&o->cell, o->n_cells, &o->cells_cap, sizeof(*o->cell));
	m->bad = m->rc != 0;
	if (m->bad)
		return;
	o->cell[o->n_cells++] = (struct vv_pickle_cell){ .value = v };
	if (list->n++)
		o->cell[list->last].next = cell;
	else
		list->first = cell;
	list->last = cell;
}

/* ---- the stack ------------------------------------------------------------------------------- */

static void push(struct pickle_machine *m, uint32_t v)
{
	if (m->bad)
		return;
	m->rc = vv_mem_room(&m->stack, m->n_stack, &m->stack_cap, sizeof(*m->stack));
	m->bad = m->rc != 0;
	if (!m->bad)
		m->stack[m->n_stack++] = v;
}

/* A mark is no value. */
static uint32_t pop(struct pickle_machine *m)
{
	m->bad = m->bad || m->n_stack == 0 || m->out->value[m->stack[m->n_stack - 1]].kind == VV_PICKLE_MARK;
	return m->bad ? 0 : m->stack[--m->n_stack];
}

static uint32_t top(struct pickle_machine *m)
{
	uint32_t v = pop(m);

	m->n_stack += !m->bad;
	return v;
}

/* The place of the first value above the highest mark. */
static size_t find_mark(struct pickle_machine *m)
{
	size_t i = m->n_stack;

	while (i && m->out->value[m->stack[i - 1]].kind != VV_PICKLE_MARK)
		i--;
	m->bad = m->bad || i == 0;
	return i;
}

static void append_marked(struct pickle_machine *m, uint32_t to, size_t from)
{
	for (size_t i = from; !m->bad && i < m->n_stack; i++)
		append(m, to, m->stack[i]);
}

/* Makes a value of those above the mark, without the first `less`. */
static uint32_t take_marked(struct pickle_machine *m, unsigned kind, size_t less)
{
	size_t from = find_mark(m);
	uint32_t v = new_value(m, kind);

	m->bad = m->bad || m->n_stack - from < less;
	if (m->bad)
		return 0;
	append_marked(m, v, from + less);
	m->n_stack = from + less;
	return v;
}

static void drop_mark(struct pickle_machine *m)
{
	m->bad = m->bad || m->n_stack == 0 || m->out->value[m->stack[m->n_stack - 1]].kind != VV_PICKLE_MARK;
	m->n_stack -= !m->bad;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void push_tuple(struct pickle_machine *m, unsigned n)
{
	uint32_t v = new_value(m, VV_PICKLE_LIST), part[3] = { 0 };

	for (unsigned i = n; i-- > 0;)
		part[i] = pop(m);
	for (unsigned i = 0; i < n && !m->bad; i++)
		append(m, v, part[i]);
	push(m, v);
}

static void push_call(struct pickle_machine *m, uint32_t function, uint32_t arguments)
{
	uint32_t v = new_value(m, VV_PICKLE_CALL);

	if (m->bad)
		return;
	append(m, v, function);
	append(m, v, arguments);
	push(m, v);
}

/* Where items of a value go: those of a call are its state. */
static uint32_t items_of(struct pickle_machine *m, uint32_t v, unsigned kind)
{
	uint32_t items;

	if (m->bad || m->out->value[v].kind != VV_PICKLE_CALL)
		return v;
	items = vv_pickle_element(m->out, v, 2);
	if (items == 0) {
		items = new_value(m, kind);
		append(m, v, items);
	}
	return items;
}

static void add_items(struct pickle_machine *m, unsigned kind, unsigned n)
{
	uint32_t part[2] = { 0 }, to;

	for (unsigned i = n; i-- > 0;)
		part[i] = pop(m);
	to = items_of(m, top(m), kind);
	for (unsigned i = 0; i < n && !m->bad; i++)
		append(m, to, part[i]);
}

static void add_marked(struct pickle_machine *m, unsigned kind)
{
	size_t from = find_mark(m);
	uint32_t to;

	m->bad = m->bad || from < 2;
	if (m->bad)
		return;
	to = items_of(m, m->stack[from - 2], kind);
	append_marked(m, to, from);
	m->n_stack = from - 1;
}

/* A second state, of attributes of a dictionary, is left out. */
static void set_state(struct pickle_machine *m)
{
	uint32_t state = pop(m), v = top(m);

	if (!m->bad && m->out->value[v].kind == VV_PICKLE_CALL && m->out->value[v].n == 2)
		append(m, v, state);
}

static void put(struct pickle_machine *m, uint64_t at)
{
	uint32_t v = top(m), *memo;

	/* Python numbers them one by one */
	m->bad = m->bad || at > m->n_memo + MOST / 16 || at >= MOST;
	if (m->bad)
		return;
	if (at >= m->memo_cap) {
		size_t cap = (size_t)at + at / 2 + 64;

		memo = vv_mem_grow(m->memo, cap, sizeof(*memo));
		m->bad = !memo;
		m->rc = memo ? 0 : VV_ENOMEM;
		if (m->bad)
			return;
		memset(memo + m->memo_cap, 0, (cap - m->memo_cap) * sizeof(*memo));
		m->memo = memo;
		m->memo_cap = cap;
	}
	m->memo[at] = v;
	m->n_memo = at >= m->n_memo ? (size_t)at + 1 : m->n_memo;
}

static void get(struct pickle_machine *m)
{
	m->bad = m->bad || m->number >= m->n_memo;
	if (!m->bad)
		push(m, m->memo[m->number]);
}

static void push_number(struct pickle_machine *m)
{
	uint32_t v = new_value(m, VV_PICKLE_INT);

	if (v)
		m->out->value[v].number = (int64_t)m->number;
	push(m, v);
}

/* The name on top of the stack, and its module below. */
static void push_global(struct pickle_machine *m)
{
	const struct vv_pickle_value *name = &m->out->value[pop(m)];

	pop(m);
	m->bad = m->bad || name->kind != VV_PICKLE_TEXT;
	if (m->bad)
		return;
	m->text = name->text;
	m->len = name->n;
	push(m, new_text(m, VV_PICKLE_GLOBAL));
}

static void push_stored(struct pickle_machine *m, uint32_t identity)
{
	uint32_t v = new_value(m, VV_PICKLE_STORED);

	append(m, v, identity);
	push(m, v);
}

static void call_marked(struct pickle_machine *m)
{
	uint32_t arguments = take_marked(m, VV_PICKLE_LIST, 1), function = pop(m);

	drop_mark(m);
	push_call(m, function, arguments);
}

static void push_marked(struct pickle_machine *m, unsigned kind)
{
	uint32_t v = take_marked(m, kind, 0);

	drop_mark(m);
	push(m, v);
}

static void call(struct pickle_machine *m)
{
	uint32_t arguments = pop(m);

	push_call(m, pop(m), arguments);
}

static void call_named(struct pickle_machine *m)
{
	uint32_t function = new_text(m, VV_PICKLE_GLOBAL), arguments = take_marked(m, VV_PICKLE_LIST, 0);

	drop_mark(m);
	push_call(m, function, arguments);
}

static void pop_marked(struct pickle_machine *m)
{
	size_t from = find_mark(m);

	m->n_stack = m->bad ? m->n_stack : from - 1;
}

static void act_on_values(struct pickle_machine *m, unsigned action)
{
	switch (action) {
	case EMPTY_LIST: push(m, new_value(m, VV_PICKLE_LIST)); break;
	case EMPTY_DICT: push(m, new_value(m, VV_PICKLE_DICT)); break;
	case MARKED_LIST: push_marked(m, VV_PICKLE_LIST); break;
	case MARKED_DICT: push_marked(m, VV_PICKLE_DICT); break;
	case TUPLE1: push_tuple(m, 1); break;
	case TUPLE2: push_tuple(m, 2); break;
	case TUPLE3: push_tuple(m, 3); break;
	case ADD_ONE: add_items(m, VV_PICKLE_LIST, 1); break;
	case ADD_MARKED: add_marked(m, VV_PICKLE_LIST); break;
	case SET_ONE: add_items(m, VV_PICKLE_DICT, 2); break;
	case SET_MARKED: add_marked(m, VV_PICKLE_DICT); break;
	case CALL_KEYWORDS: pop(m); call(m); break;
	case CALL: call(m); break;
	case CALL_MARKED: call_marked(m); break;
	case CALL_NAMED: call_named(m); break;
	case STATE: set_state(m); break;
	default: m->bad = true;
	}
}

static void act(struct pickle_machine *m, unsigned action)
{
	switch (action) {
	case NOTHING: break;
	case STOP: m->out->root = top(m); m->stopped = true; break;
	case MARK: push(m, new_value(m, VV_PICKLE_MARK)); break;
	case POP: m->bad = m->n_stack == 0; m->n_stack -= !m->bad; break;
	case POP_MARK: pop_marked(m); break;
	case DUP: push(m, top(m)); break;
	case OTHER: push(m, 0); break;
	case NUMBER: push_number(m); break;
	case TEXT: push(m, new_text(m, VV_PICKLE_TEXT)); break;
	case GLOBAL: push(m, new_text(m, VV_PICKLE_GLOBAL)); break;
	case GLOBAL_OF_STACK: push_global(m); break;
	case STORED: push_stored(m, new_text(m, VV_PICKLE_TEXT)); break;
	case STORED_OF_STACK: push_stored(m, pop(m)); break;
	case GET: get(m); break;
	case PUT: put(m, m->number); break;
	case MEMOIZE: put(m, m->n_memo); break;
	default: act_on_values(m, action);
	}
}

/* ---- arguments ------------------------------------------------------------------------------- */

static uint64_t get_number(struct pickle_machine *m, size_t n)
{
	uint64_t v;

	m->bad = m->bad || (size_t)(m->end - m->p) < n;
	if (m->bad)
		return 0;
	v = vv_peek_number(m->p, n, false);
	m->p += n;
	return v;
}

/* Also the number that the bytes are, if there are at most eight. */
static void get_counted(struct pickle_machine *m, size_t n)
{
	uint64_t len = get_number(m, n);

	m->bad = m->bad || len > (size_t)(m->end - m->p);
	if (m->bad)
		return;
	m->text = (const char *)m->p;
	m->len = (size_t)len;
	m->number = len && len <= 8 ? vv_peek_number(m->p, m->len, false) : 0;
	if (len && len < 8 && m->p[len - 1] & 0x80)
		m->number |= UINT64_MAX << (8 * len);
	m->p += len;
}

/* Also the number that the text is; quotes are not part of a text. */
static void get_line(struct pickle_machine *m)
{
	const uint8_t *nl = m->bad ? NULL : memchr(m->p, '\n', (size_t)(m->end - m->p));

	m->bad = !nl;
	if (m->bad)
		return;
	m->text = (const char *)m->p;
	m->len = (size_t)(nl - m->p);
	m->p = nl + 1;
	m->number = 0;
	for (size_t i = 0; i < m->len && m->text[i] >= '0' && m->text[i] <= '9'; i++)
		m->number = m->number * 10 + (uint64_t)(m->text[i] - '0');
	if (m->len >= 2 && (m->text[0] == '\'' || m->text[0] == '"')) {
		m->text++;
		m->len -= 2;
	}
}

static void get_argument(struct pickle_machine *m, unsigned argument)
{
	switch (argument) {
	case NONE: break;
	case BYTES1: m->number = get_number(m, 1); break;
	case BYTES2: m->number = get_number(m, 2); break;
	case BYTES4: m->number = get_number(m, 4); break;
	case BYTES8: m->number = get_number(m, 8); break;
	case SIGNED4: m->number = (uint64_t)(int64_t)(int32_t)get_number(m, 4); break;
	case COUNTED1: get_counted(m, 1); break;
	case COUNTED4: get_counted(m, 4); break;
	case COUNTED8: get_counted(m, 8); break;
	case LINES2: get_line(m); get_line(m); break;
	case LINE: get_line(m); break;
	}
}

static const struct pickle_opcode *find_opcode(uint8_t code)
{
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++)
		if (opcodes[i].code == code)
			return &opcodes[i];
	return NULL;
}

int vv_pickle_read(const uint8_t *p, size_t n, struct vv_pickle *out)
{
	struct pickle_machine m = { .p = p, .end = p + n, .out = out };

	*out = (struct vv_pickle){ .value = vv_mem_new(1, sizeof(*out->value)), .cell = vv_mem_new(1, sizeof(*out->cell)),
				   .n_values = 1, .values_cap = 1, .n_cells = 1, .cells_cap = 1 };
	if (!out->value || !out->cell)
		m.rc = VV_ENOMEM;
	m.bad = m.rc != 0;
	while (!m.bad && !m.stopped && m.p < m.end) {
		const struct pickle_opcode *op = find_opcode(*m.p++);

		m.bad = !op;
		if (op)
			get_argument(&m, op->argument);
		if (!m.bad)
			act(&m, op->action);
	}
	vv_mem_free(m.stack);
	vv_mem_free(m.memo);
	if (m.rc)
		vv_pickle_fini(out);
	return m.rc;
}

void vv_pickle_fini(struct vv_pickle *p)
{
	vv_mem_free(p->value);
	vv_mem_free(p->cell);
	*p = (struct vv_pickle){ 0 };
}

/* ---- values for others ----------------------------------------------------------------------- */

uint32_t vv_pickle_element(const struct vv_pickle *p, uint32_t value, uint32_t i)
{
	uint32_t cell;

	if (!has_elements(p, value) || i >= p->value[value].n)
		return 0;
	for (cell = p->value[value].first; i; i--)
		cell = p->cell[cell].next;
	return p->cell[cell].value;
}

bool vv_pickle_is(const struct vv_pickle *p, uint32_t value, const char *text)
{
	const struct vv_pickle_value *v = &p->value[value];

	return (v->kind == VV_PICKLE_TEXT || v->kind == VV_PICKLE_GLOBAL) && v->n == strlen(text) && memcmp(v->text, text, v->n) == 0;
}

uint32_t vv_pickle_lookup(const struct vv_pickle *p, uint32_t value, const char *key)
{
	uint32_t cell = p->value[value].kind == VV_PICKLE_DICT ? p->value[value].first : 0;

	for (unsigned i = 0; i < KEYS && cell && p->cell[cell].next; i++, cell = p->cell[p->cell[cell].next].next)
		if (vv_pickle_is(p, p->cell[cell].value, key))
			return p->cell[p->cell[cell].next].value;
	return 0;
}

bool vv_pickle_count(const struct vv_pickle *p, uint32_t value, uint64_t *out)
{
	const struct vv_pickle_value *v = &p->value[value];

	if (v->kind != VV_PICKLE_INT || v->number < 0)
		return false;
	*out = (uint64_t)v->number;
	return true;
}
