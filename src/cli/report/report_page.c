/* The page is made of report/ when varve is built: one text, with a gap for the data. */
#include "cli/report/report_page.h"
#include "base/err.h"
#include "cli/report/report.h"
#include "vv_config.h"

#if VV_HAVE_REPORT
extern const unsigned char vv_report_page_text[]; /* up to the gap, and from there on */
extern const size_t vv_report_page_hole, vv_report_page_len;
#else
static const unsigned char vv_report_page_text[] = "";
static const size_t vv_report_page_hole = 0, vv_report_page_len = 0;
#endif

int vv_report_page_check(void)
{
	return vv_report_page_len ? 0 :
				    vv_err_set(VV_ENOTSUP, "report: the page is not built in (VARVE_WITH_REPORT, which needs node and npm); "
							   "--json gives the data");
}

/* Names come from the store and may contain any characters. Inside a script element only a '<' can
 * end the element or begin a comment. In JSON a '<' can only be in a string, where it may be
 * written as its number. */
int vv_report_page_make(const struct vv_buf *json, struct vv_buf *out)
{
	int rc = vv_report_page_check();

	if (rc)
		return rc;
	vv_buf_add(out, vv_report_page_text, vv_report_page_hole);
	for (size_t i = 0, k; i < json->n; i = k) {
		for (k = i; k < json->n && json->p[k] != '<'; k++)
			;
		vv_buf_add(out, json->p + i, k - i);
		if (k < json->n) {
			vv_buf_add(out, "\\u003c", 6);
			k++;
		}
	}
	vv_buf_add(out, vv_report_page_text + vv_report_page_hole, vv_report_page_len - vv_report_page_hole);
	return vv_buf_check(out);
}
