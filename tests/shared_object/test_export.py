"""Exported libraries compute in C what their functions compute in Python, bit for bit."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.shared_object.running import Program

RNG = np.random.default_rng(0)
layers = td.keras.layers


def numbers(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def same(found: Any, wanted: Any) -> None:
    assert np.array_equal(found, wanted), np.abs(np.asarray(found, float) - wanted).max()


SERVE = """
int main(void)
{
    struct net_serve call = NET_SERVE_INIT;
    call.inputs.data = read_file("x");
    call.inputs.shape[0] = BATCH;
    CHECK(net_serve(&call));
    write_file("y", call.output_0.data, sizeof(float) * call.output_0.shape[0] * OUTPUTS);
    net_free(call.output_0.data);
    printf("%lld\\n", (long long)call.output_0.shape[0]);
    return 0;
}
"""


def check_model(model: Any, folder: Path, *shape: int, outputs: int) -> None:
    """A Keras model in C, for an open number of examples."""
    path = folder / "libnet.so"
    model.export(path, format="shared_object")
    exported = td.shared_object.Exported(path, folder / "net.h", {})
    for batch in (1, 7):
        program = Program(exported, SERVE, [f"-DBATCH={batch}", f"-DOUTPUTS={outputs}"])
        x = numbers(batch, *shape)
        assert program(x=x) == [str(batch)]
        wanted = model(td.constant(x), training=False).numpy()
        served = td.function(lambda inputs: model(inputs, training=False))
        assert wanted.shape == (batch, outputs)
        same(program.result("y", wanted), served(td.constant(x)).numpy())


def test_an_mlp(tmp_path: Path) -> None:
    model = td.keras.Sequential([
        layers.Input((8,)), layers.Dense(16, "relu"), layers.Dropout(0.5),
        layers.Dense(3, "softmax"),
    ])  # fmt: skip
    check_model(model, tmp_path, 8, outputs=3)
    header = (tmp_path / "net.h").read_text()
    assert "inputs: float32 [inputs_dim_0, 8]" in header
    assert len(re.findall(r"NET_\w+ = \d, /\* .*, float32 \[", header)) == 4


def test_a_cnn(tmp_path: Path) -> None:
    model = td.keras.Sequential([
        layers.Input((12, 12, 1)), layers.Conv2D(4, 3, activation="relu"), layers.MaxPooling2D(),
        layers.BatchNormalization(), layers.Flatten(), layers.Dense(5),
    ])  # fmt: skip
    check_model(model, tmp_path, 12, 12, 1, outputs=5)


def test_an_lstm(tmp_path: Path) -> None:
    model = td.keras.Sequential([layers.Input((6, 4)), layers.LSTM(5), layers.Dense(2)])
    check_model(model, tmp_path, 6, 4, outputs=2)


def test_a_loop_with_an_array_that_grows(tmp_path: Path) -> None:
    @td.function(input_signature=[td.TensorSpec([None], name="x"), td.TensorSpec([], name="limit")])
    def halve(x, limit):
        """Norms until x is small enough."""
        norms = td.TensorArray(td.float32, 0, dynamic_size=True)
        steps = 0
        while td.reduce_max(td.abs(x)) > limit:
            x = x / 2.0
            norms = norms.write(steps, td.reduce_sum(x * x))
            steps += 1
        return {"norms": norms.stack(), "steps": steps, "x": x}

    exported = td.shared_object.export({"halve": halve}, tmp_path / "libnet.so")
    program = Program(exported, """
        int main(void)
        {
            struct net_halve call = NET_HALVE_INIT;
            call.x.data = read_file("x");
            call.x.shape[0] = 9;
            call.limit = 0.05f;
            float small[9], norms[32];
            call.x_2.data = small;
            call.x_2.room = 9;
            call.norms.data = norms;
            call.norms.room = 32;
            CHECK(net_halve(&call));
            printf("%d %d\\n", call.steps, (int)call.norms.shape[0]);
            write_file("small", small, sizeof small);
            write_file("norms", norms, sizeof(float) * call.norms.shape[0]);
            call.norms.room = 1;
            printf("%d %s\\n", net_halve(&call), net_error());
            return 0;
        }
        """)  # fmt: skip
    x = numbers(9)
    wanted = {k: v.numpy() for k, v in halve(td.constant(x), td.constant(0.05)).items()}
    first, second = program(x=x)
    steps = int(wanted["steps"])
    assert first == f"{steps} {steps}" and steps > 2
    assert second == (
        f"1 net_halve: norms has the shape [{steps}], and there is room for 1 elements"
    )
    same(program.result("small", wanted["x"]), wanted["x"])
    same(program.result("norms", wanted["norms"]), wanted["norms"])


class Line(td.Module):
    """A linear model with a training step."""

    def __init__(self) -> None:
        self.w = td.Variable(numbers(3, 1), name="w")
        self.b = td.Variable(0.0, name="b")
        self.steps = td.Variable(0, dtype=td.int64, name="steps")
        self.optimizer = td.keras.optimizers.Adam(0.1)

    @td.function(input_signature=[td.TensorSpec([None, 3], name="x")])
    def predict(self, x):
        return {"y": x @ self.w + self.b}

    @td.function(
        input_signature=[td.TensorSpec([None, 3], name="x"), td.TensorSpec([None, 1], name="y")]
    )
    def train(self, x, y):
        with td.GradientTape() as tape:
            loss = td.reduce_mean((x @ self.w + self.b - y) ** 2)
        variables = [self.w, self.b]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.steps.assign_add(1)
        return {"loss": loss}


TRAIN = """
int main(void)
{
    struct net_train step = NET_TRAIN_INIT;
    float *x = read_file("x"), *y = read_file("y"), losses[20];
    step.x.data = x;
    step.y.data = y;
    step.x.shape[0] = step.y.shape[0] = 40;
    for (int i = 0; i < 20; i++) {
        CHECK(net_train(&step));
        losses[i] = step.loss;
    }
    write_file("losses", losses, sizeof losses);
    for (int v = 0; v < NET_VARIABLES; v++) {
        const struct net_variable_info *info = net_variable_info(v);
        void *value = malloc(info->bytes);
        CHECK(net_get_variable(v, value, info->bytes));
        char name[80];
        snprintf(name, sizeof name, "variable_%d", v);
        write_file(name, value, info->bytes);
        printf("%s %s %d\\n", info->name, info->dtype, info->rank);
        free(value);
    }
    float w[3] = {1, 2, 4}, b = 0.5f, found;
    CHECK(net_set_variable(NET_W, w, sizeof w));
    CHECK(net_set_variable(NET_B, &b, sizeof b));
    struct net_predict call = NET_PREDICT_INIT;
    float one[3] = {1, 1, 1};
    call.x.data = one;
    call.x.shape[0] = 1;
    call.y.data = &found;
    call.y.room = 1;
    CHECK(net_predict(&call));
    printf("%g\\n", found);
    printf("%d %s\\n", net_set_variable(NET_W, w, 8), net_error());
    printf("%d %s\\n", net_get_variable(99, w, 8), net_error());
    free(x);
    free(y);
    return net_variable_info(NET_VARIABLES) != NULL || net_variable_info(-1) != NULL;
}
"""


def test_a_training_step_changes_its_variables(tmp_path: Path) -> None:
    line, x = Line(), numbers(40, 3)
    y = x @ np.array([[1], [-2], [0.5]], np.float32) + 0.25
    line.train(x, y)  # makes the optimizer's variables: they begin with what they are now
    exported = td.shared_object.export(
        {"predict": line.predict, "train": line.train}, tmp_path / "libnet.so"
    )
    program = Program(exported, TRAIN, ["-fsanitize=address,undefined"])
    lines = program(x=x, y=y)
    losses = np.array([line.train(x, y)["loss"] for _ in range(20)], np.float32)
    same(program.result("losses", losses), losses)
    assert losses[-1] < losses[0] / 4
    values = {"w": line.w, "b": line.b, "steps": line.steps}
    told = [text.split() for text in lines[:-3]]
    assert set(values) < {name for name, _, _ in told} and len(told) >= 7
    for number, (name, dtype, rank) in enumerate(told):
        if name in values:
            wanted = values[name].numpy()
            assert (dtype, int(rank)) == (wanted.dtype.name, wanted.ndim)
            same(program.result(f"variable_{number}", wanted), wanted)
    assert lines[-3] == "7.5"
    assert lines[-2].startswith("1 variable ") and lines[-2].endswith("has 12 bytes, not 8")
    assert lines[-1] == f"1 there is no variable 99: there are {len(told)}"


KINDS = {
    "f8": np.linspace(-2, 2, 6), "i1": np.arange(-3, 3, dtype=np.int8),
    "i2": np.arange(6, dtype=np.int16), "i4": np.arange(6, dtype=np.int32),
    "i8": np.arange(6) * 10**12, "u1": np.arange(250, 256, dtype=np.uint8),
    "flag": np.array([1, 0, 0, 1, 1, 0], bool), "half": np.linspace(-1, 1, 6).astype(np.float16),
}  # fmt: skip


def test_dtypes(tmp_path: Path) -> None:
    specs = [td.TensorSpec([6], a.dtype, name) for name, a in KINDS.items()]

    @td.function(input_signature=specs)
    def change(f8, i1, i2, i4, i8, u1, flag, half):
        return {
            "f8": td.sin(f8), "i1": -i1, "i2": i2 * i2, "i4": i4 // 3, "i8": i8 + 1, "u1": u1 + 1,
            "flag": ~flag, "half": half * half, "count": td.math.count_nonzero(flag),
            "any": td.reduce_any(flag), "total": td.reduce_sum(f8),
        }  # fmt: skip

    exported = td.shared_object.export({"change": change}, tmp_path / "libnet.so")
    calls = "".join(f'    call.{n}.data = read_file("{n}");\n' for n in KINDS)
    saved = "".join(
        f'    write_file("{n}.out", call.{n}_2.data, 6 * {a.itemsize});\n' for n, a in KINDS.items()
    )
    program = Program(exported, f"""
        int main(void)
        {{
            struct net_change call = NET_CHANGE_INIT;
        {calls}
            CHECK(net_change(&call));
        {saved}
            printf("%lld %d %.17g\\n", (long long)call.count, call.any, call.total);
            return 0;
        }}
        """)  # fmt: skip
    wanted = change(*KINDS.values())
    (line,) = program(**KINDS)
    assert line.split()[:2] == ["3", "1"]
    assert float(line.split()[2]) == wanted["total"].numpy()
    for name in KINDS:
        same(program.result(f"{name}.out", wanted[name].numpy()), wanted[name].numpy())


def test_errors_are_told(tmp_path: Path) -> None:
    table = td.Variable(numbers(5, 2), name="table")

    @td.function(
        input_signature=[td.TensorSpec([None], td.int32, "at"), td.TensorSpec([None, 2], name="x")]
    )
    def look(at, x):
        td.debugging.assert_positive(td.reduce_sum(x), "the sum is 100 % wrong")
        return {"rows": td.gather(table, at) + x}

    exported = td.shared_object.export({"look": look}, tmp_path / "libnet.so")
    program = Program(exported, """
        static int at[3] = {0, 4, 2};
        static float x[6] = {1, 2, 3, 4, 5, 6}, rows[6];

        static struct net_look fresh(void)
        {
            struct net_look call = NET_LOOK_INIT;
            call.at.data = at;
            call.at.shape[0] = 3;
            call.x.data = x;
            call.x.shape[0] = 3;
            call.rows.data = rows;
            call.rows.room = 6;
            return call;
        }

        static void tell(struct net_look call)
        {
            int status = net_look(&call);
            printf("%d|%s|", status, status ? net_error() : "");
        }

        int main(void)
        {
            struct net_look call = fresh();
            tell(call);
            call.x.shape[1] = 3;
            tell(call);
            call = fresh(), call.x.shape[0] = -1;
            tell(call);
            call = fresh(), call.x.data = NULL;
            tell(call);
            call = fresh(), call.rows.room = 5;
            tell(call);
            call = fresh(), call.at.shape[0] = 2;
            tell(call);
            call = fresh(), call.x.shape[0] = (int64_t)1 << 62;
            tell(call);
            at[1] = 5;
            tell(fresh());
            at[1] = 4, x[0] = -100;
            tell(fresh());
            x[0] = 1;
            tell(fresh());
            printf("%d|%s", net_look(NULL), net_error());
            return 0;
        }
        """, ["-fsanitize=address,undefined"])  # fmt: skip
    parts = "\n".join(program()).split("|")
    told = list(zip(parts[::2], parts[1::2], strict=True))
    shape = "and must be float32 [x_dim_0, 2]"
    assert told[0] == ("0", "")
    assert told[1] == ("1", f"net_look: x has the shape [3, 3], {shape}")
    assert told[2] == ("1", f"net_look: x has the shape [-1, 2], {shape}")
    assert told[3] == ("1", "net_look: x has no elements: its data is NULL")
    assert told[4] == ("1", "net_look: rows has the shape [3, 2], and there is room for 5 elements")
    assert told[5][0] in ("1", "2") and told[5][1]
    assert told[6] == (
        "1", "net_look: x has the shape [4611686018427387904, 2]: no memory has so many elements"
    )  # fmt: skip
    assert told[7][0] == "2" and "gather(" in told[7][1] and "position" in told[7][1]
    assert f"{Path(__file__).name}:" in told[7][1] and "td.gather(table, at)" in told[7][1]
    assert told[8][0] == "2" and "the sum is 100 % wrong" in told[8][1]
    assert told[9] == ("0", "")
    assert told[10] == ("1", "net_look: there is no struct of the call")


THREADS = """
#include <pthread.h>

static const float *inputs;
static float *wanted;
static int wrong, failed;

static void *call_often(void *number)
{
    for (int i = 0; i < 200; i++) {
        int rows = 1 + (i + (int)(size_t)number) % 16;
        struct net_predict call = NET_PREDICT_INIT;
        call.x.data = inputs;
        call.x.shape[0] = rows;
        if (net_predict(&call) != NET_OK) {
            __atomic_fetch_add(&failed, 1, __ATOMIC_SEQ_CST);
            continue;
        }
        if (memcmp(call.y.data, wanted, sizeof(float) * rows * 40) != 0)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
        net_free(call.y.data);
        struct net_count count = NET_COUNT_INIT;
        if (net_count(&count) != NET_OK)
            __atomic_fetch_add(&failed, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

int main(void)
{
    inputs = read_file("x");
    wanted = read_file("y");
    for (int shared = 1; shared <= 2; shared++) {
        CHECK(net_set_threads(shared));
        pthread_t threads[8];
        for (size_t k = 0; k < 8; k++)
            pthread_create(&threads[k], NULL, call_often, (void *)k);
        for (int k = 0; k < 8; k++)
            pthread_join(threads[k], NULL);
    }
    int total;
    CHECK(net_get_variable(NET_TOTAL, &total, sizeof total));
    printf("%d %d %d %s\\n", wrong, failed, total, net_error());
    return 0;
}
"""


def test_several_threads_call_at_once(tmp_path: Path) -> None:
    """Results are right whoever shares the work, and no assignment is lost."""
    weight = td.Variable(numbers(300, 40), name="weight")
    total = td.Variable(0, name="total")

    @td.function(input_signature=[td.TensorSpec([None, 300], name="x")])
    def predict(x):
        return {"y": td.tanh(x @ weight)}

    @td.function(input_signature=[])
    def count():
        total.assign_add(1)

    exported = td.shared_object.export(
        {"predict": predict, "count": count}, tmp_path / "libnet.so", threads=2
    )
    x = numbers(16, 300)
    # A product's sums do not depend on the number of its rows in this shape.
    y = predict(td.constant(x)).popitem()[1].numpy()
    program = Program(exported, THREADS)
    wrong, failed, found, *message = program(x=x, y=y)[0].split()
    assert (int(failed), int(found), message) == (0, 2 * 8 * 200, [])
    assert int(wrong) == 0


def test_calls_leak_no_memory(tmp_path: Path) -> None:
    """100,000 calls: results that the library allocates, lists, workspace, and errors."""
    @td.function(input_signature=[td.TensorSpec([None], name="x")])
    def positive(x):
        items = td.TensorArray(td.float32, 0, dynamic_size=True)
        for k in td.range(3):
            items = items.write(k, td.cast(k, td.float32))
        chosen = td.boolean_mask(x, x > 0)
        td.debugging.assert_less(td.size(chosen), 60)
        return {"chosen": chosen, "items": items.stack(), "sorted": td.sort(x)}

    exported = td.shared_object.export({"positive": positive}, tmp_path / "libnet.so")
    program = Program(exported, """
        #include <sys/resource.h>

        static long peak(void)
        {
            struct rusage use;
            getrusage(RUSAGE_SELF, &use);
            return use.ru_maxrss;
        }

        int main(void)
        {
            float *x = read_file("x");
            long before = 0;
            int refused = 0;
            for (int i = 0; i < 100000; i++) {
                struct net_positive call = NET_POSITIVE_INIT;
                call.x.data = x;
                call.x.shape[0] = i % 100;
                int status = net_positive(&call);
                refused += status == NET_FAILED;
                if (status == NET_OK) {
                    net_free(call.chosen.data);
                    net_free(call.items.data);
                    net_free(call.sorted.data);
                }
                if (i == 2000)
                    before = peak();
            }
            printf("%d %ld\\n", refused, peak() - before);
            return 0;
        }
        """)  # fmt: skip
    x = np.where(np.arange(100) % 5 == 4, -1, np.arange(100) + 1).astype(np.float32)
    refused, grown = map(int, program(x=x)[0].split())
    assert refused == 1000 * sum(int((x[:n] > 0).sum()) >= 60 for n in range(100)) > 0
    assert grown < 1024  # kilobytes


def test_memory_is_given_back(tmp_path: Path) -> None:
    """The sanitizer finds no leak, no use of freed memory and no overrun, also when it unloads."""
    @td.function(input_signature=[td.TensorSpec([None, 64], name="x")])
    def f(x):
        return {"y": td.linalg.matmul(td.transpose(td.nn.softmax(x)), x), "big": td.where(x > 0)}

    exported = td.shared_object.export({"f": f}, tmp_path / "libnet.so")
    program = Program(exported, """
        #include <dlfcn.h>

        int main(void)
        {
            void *library = dlopen("./libnet.so", RTLD_NOW);
            int (*f)(struct net_f *) = (int (*)(struct net_f *))dlsym(library, "net_f");
            int (*threads)(int) = (int (*)(int))dlsym(library, "net_set_threads");
            if (!f || !threads) return 1;
            float *x = calloc(64 * 64, sizeof *x);
            x[5] = 1;
            threads(2);
            for (int i = 0; i < 5; i++) {
                struct net_f call = NET_F_INIT;
                call.x.data = x;
                call.x.shape[0] = 64;
                int status = f(&call);
                printf("%d %lld\\n", status, (long long)call.big.shape[0]);
                free(call.y.data);
                free(call.big.data);
            }
            free(x);
            return dlclose(library);
        }
        """, ["-fsanitize=address,undefined", "-Wl,--as-needed", "-ldl"])  # fmt: skip
    assert program() == ["0 1"] * 5


def test_the_library_knows_nothing_of_python(tmp_path: Path) -> None:
    model = td.keras.Sequential([layers.Input((8,)), layers.Dense(4, "gelu")])
    model.export(tmp_path / "libnet.so", format="shared_object")
    path = str(tmp_path / "libnet.so")
    names = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    assert "net_serve" in names
    assert not [n for n in names.split() if n.startswith(("Py", "_Py")) or "python" in n.lower()]
    assert not re.search(r" [TDBR] (?!net_)", names), names  # nothing else can be seen
    found = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    assert "python" not in found and "libc.so" in found


def test_the_header_is_one_of_cpp_and_of_plain_c(tmp_path: Path) -> None:
    line = Line()
    exported = td.shared_object.export({"predict": line.predict}, tmp_path / "libnet.so")
    use = tmp_path / "use.c"
    use.write_text(
        '#include "net.h"\n#include "net.h"\n'
        "int use(void) { struct net_predict call = NET_PREDICT_INIT; return net_predict(&call); }\n"
    )
    cpp = [["-x", "c++", "-std=c++11"]] if shutil.which("c++") else []
    for how in (["-std=c99"], ["-std=c11"], *cpp):
        flags = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        done = subprocess.run(
            ["cc", *how, *flags, str(use)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert exported.functions == {"predict": "net_predict"}


def test_functions_share_code_and_constants(tmp_path: Path) -> None:
    table = td.constant(numbers(400, 100))
    spec = td.TensorSpec([None, 400], name="x")

    def size(count: int) -> int:
        functions = {f"f{k}": (lambda x: {"y": td.nn.relu(x @ table)}, spec) for k in range(count)}
        path = tmp_path / "libnet.so"
        return td.shared_object.export(functions, path).library.stat().st_size  # type: ignore[no-any-return]

    one, three = size(1), size(3)
    assert 4 * 400 * 100 < one <= three < one + 20_000


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_levels_of_x86(level: str, tmp_path: Path) -> None:
    """A library for a level has the bits of programs made for that level."""
    from treadle.runtime.cpu.target import can_run, named, using

    target = named(level)
    if not target.is_x86 or not can_run(target):
        pytest.skip(f"this processor does not run {level}")
    weight = td.constant(numbers(50, 20))
    x = numbers(9, 50)

    def make() -> Any:
        return td.function(lambda x: {"y": td.nn.softmax(td.exp(td.sin(x @ weight)))})

    specs = td.TensorSpec([9, 50], name="x")
    exported = td.shared_object.export({"f": (make(), specs)}, tmp_path / "libnet.so", target=level)
    program = Program(exported, """
        int main(void)
        {
            struct net_f call = NET_F_INIT;
            call.x.data = read_file("x");
            CHECK(net_f(&call));
            write_file("y", call.y.data, sizeof(float) * 180);
            return 0;
        }
        """)  # fmt: skip
    program(x=x)
    with using(target):
        wanted = make()(td.constant(x))["y"].numpy()
    same(program.result("y", wanted), wanted)


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="there is no qemu-x86_64")
def test_an_older_processor_is_told_what_it_lacks(tmp_path: Path) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("libraries of x86-64 are linked there")
    exported = td.shared_object.export(
        lambda x: x * 2 + 1, tmp_path / "libnet.so", td.TensorSpec([40]), target="x86-64-v3",
        name="net",
    )  # fmt: skip
    assert list(exported.functions.values()) == ["net_call"]
    Program(exported, """
        int main(void)
        {
            static float x[40];
            struct net_call call = NET_CALL_INIT;
            call.x.data = x;
            printf("%d %s\\n", net_call(&call), net_error());
            return 0;
        }
        """)  # fmt: skip
    for processor, said in (("Nehalem", "2 this processor lacks "), ("max", "0 ")):
        line = ["qemu-x86_64", "-cpu", processor, str(tmp_path / "program")]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(said), done.stdout


# -- what is refused -------------------------------------------------------------------------------


def refusal(function: Any, *specs: Any, folder: Path) -> str:
    with pytest.raises(td.errors.UnimplementedError) as caught:
        td.shared_object.export(function, folder / "libnet.so", *specs)
    assert not list(folder.iterdir())
    return str(caught.value)


def test_programs_that_need_python_are_refused(tmp_path: Path) -> None:
    vector, boxes = td.TensorSpec([4]), td.TensorSpec([3, 4])

    def of_python(x):
        return td.py_function(lambda a: a + 1, [x], td.float32)

    def without_machine_code(x):
        return td.image.non_max_suppression(x, x[:, 0], 2)

    def prints(x):
        td.print("x is", x)
        return x + 1

    def of_strings(x):
        return td.strings.as_string(x)

    def a_list(x):
        return td.TensorArray(td.float32, 1, element_shape=[4]).write(0, x)

    for function, spec, op in (
        (of_python, vector, "py_function"), (prints, vector, "print"),
        (without_machine_code, boxes, "non_max_suppression runs in Python"),
        (of_strings, vector, "strings"), (a_list, vector, "list of tensors"),
    ):  # fmt: skip
        text = refusal(function, spec, folder=tmp_path)
        assert "cannot run without Python" in text and op in text, text
        if function is not a_list:
            assert f"{Path(__file__).name}:" in text, text


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    text = refusal(lambda z: z * z, td.TensorSpec([2], td.complex64, "z"), folder=tmp_path)
    assert "z" in text and "complex64" in text


def test_wrong_requests(tmp_path: Path) -> None:
    def f(x):
        return x + 1

    spec, path = td.TensorSpec([2]), tmp_path / "libnet.so"
    with pytest.raises(ValueError, match="'z80' is no machine; known are native"):
        td.shared_object.export(f, path, spec, target="z80")
    with pytest.raises(td.errors.InvalidArgumentError, match="'7up' cannot begin a name in C"):
        td.shared_object.export(f, tmp_path / "lib7up.so", spec)
    with pytest.raises(td.errors.InvalidArgumentError, match="no function to export"):
        td.shared_object.export({}, path)
    with pytest.raises(td.errors.InvalidArgumentError, match="threads must be from 1"):
        td.shared_object.export(f, path, spec, threads=0)
    with pytest.raises(td.errors.FailedPreconditionError, match="no C compiler 'no-such-cc'"):
        td.shared_object.export(f, path, spec, compiler="no-such-cc")
    with pytest.raises(td.errors.FailedPreconditionError, match="failed:\n"):
        td.shared_object.export(f, path, spec, compiler="false")
    assert not list(tmp_path.iterdir())


def test_without_a_compiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    function, spec = (lambda x: x + 1), td.TensorSpec([2])
    with pytest.raises(td.errors.FailedPreconditionError, match="apt-get install gcc libc6-dev"):
        td.shared_object.export(function, tmp_path / "libnet.so", spec, name="net")
    other = "x86-64" if platform.machine() == "aarch64" else "aarch64"
    with pytest.raises(td.errors.FailedPreconditionError, match="apt-get install gcc-[a-z0-9-]+"):
        td.shared_object.export(function, tmp_path / "libnet.so", spec, name="net", target=other)


def test_names_that_c_does_not_take(tmp_path: Path) -> None:
    kept, other = td.Variable(1.0, name="a/b */ c"), td.Variable(2.0, name="ok")

    @td.function(input_signature=[td.TensorSpec([2], name="int"), td.TensorSpec([2], name="x.y")])
    def f(a, b):
        return {"class": a + kept, "1": b + other, "int": a}

    both = {"do it": f, "error": f, "Do_It": f}
    exported = td.shared_object.export(both, tmp_path / "libnet.so")
    names = {"do it": "net_do_it", "error": "net_error_2", "Do_It": "net_Do_It_2"}
    assert exported.functions == names
    header = exported.header.read_text()
    assert re.findall(r"} (\w+);", header)[:5] == ["int_", "x_y", "_1", "class_", "int__2"]
    Program(exported, "int main(void) { return NET_A_B_C + NET_OK_2 - 1; }")()
