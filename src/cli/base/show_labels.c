#include "cli/base/show_labels.h"
#include "engine/lineage/label.h"

void vv_show_labels_add(struct vv_buf *b, const struct vv_listing *l, uint64_t epoch)
{
	size_t n = 0;
	const struct vv_label_name *of = vv_label_of(l, epoch, &n);

	for (size_t i = 0; i < n; i++)
		vv_buf_printf(b, "%s%s", i ? " " : "", of[i].label);
}

int vv_show_labels_cell(struct vv_text_table *t, const struct vv_listing *l, uint64_t epoch)
{
	struct vv_buf b = { 0 };
	int rc;

	vv_show_labels_add(&b, l, epoch);
	vv_buf_add(&b, "", 1);
	rc = vv_buf_check(&b);
	if (rc == 0)
		vv_text_cell(t, "%s", (const char *)b.p);
	vv_buf_fini(&b);
	return rc;
}

void vv_show_labels_put(struct vv_json *j, const struct vv_listing *l, uint64_t epoch)
{
	size_t n = 0;
	const struct vv_label_name *of = vv_label_of(l, epoch, &n);

	vv_json_array(j, "labels");
	for (size_t i = 0; i < n; i++)
		vv_json_text(j, NULL, of[i].label);
	vv_json_end(j);
}
