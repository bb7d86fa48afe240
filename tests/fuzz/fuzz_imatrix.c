/* libFuzzer's target for importance matrices. The input is read as a file of either format.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if a mean is negative or not finite. */
#include <math.h>

#include "formats/imatrix.h"
#include "tests/fuzz/harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    fr_imatrix imatrix;
    if (refused(fr_imatrix_open_bytes(&imatrix, bytes, size, "fuzz"))) return 0;
    fuzz_inputs_read++;
    for (size_t i = 0; i < imatrix.count; i++) {
        const fr_imatrix_entry *entry = &imatrix.entries[i];
        if (fr_imatrix_find(&imatrix, entry->name) != entry) abort();
        for (size_t c = 0; c < entry->count; c++)
            if (!(entry->means[c] >= 0 && isfinite(entry->means[c]))) abort();
    }
    fr_imatrix_close(&imatrix);
    return 0;
}
