"""td.train: checkpoints of objects that change, managers, what is asked of files, averages."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.facts_tf.registry import outcome, program, raised


class Folder:
    """A folder for a program, as a Path."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        return Path(self._folder.__enter__())

    def __exit__(self, *error):
        self._folder.__exit__(*error)


def stem(path):
    return None if path is None else Path(path).name


@program
def graphs_of_objects_that_changed(tf):
    V, C = tf.Variable, tf.train.Checkpoint

    class Net(tf.Module):
        def __init__(self, *names):
            super().__init__()
            for n, name in enumerate(names):
                setattr(self, name, V([float(n + 1)] * 2))

    with Folder() as root:
        path = C(net=Net("a", "b"), step=V(3)).save(str(root / "ck"))
        found = []
        for names in (("a", "b"), ("a",), ("a", "b", "c"), ("x",), ()):
            net = Net(*names)
            for v in net.variables:
                v.assign([0.0, 0.0])
            status = C(net=net).restore(path)
            found.append(
                [
                    {name: getattr(net, name) for name in names},
                    raised(status.assert_consumed),
                    raised(status.assert_existing_objects_matched),
                    raised(status.assert_nontrivial_match),
                ]
            )
        other = Net("a")
        other.a = V([[0.0, 0.0]])
        found.append([raised(C(net=other).restore, path), other.a])
        other.a = V([0, 0])
        found.append(raised(C(net=other).restore, path))
        other.a = V([0.0, 0.0, 0.0])
        found.append(raised(C(net=other).restore, path))
        # Objects that come later, and parts of the graph that have another place.
        late = Net()
        status = C(net=late).restore(path)
        late.b = V([0.0, 0.0])
        found.append([late.b, raised(status.assert_existing_objects_matched)])
        late.a = V([0.0, 0.0])
        late.step = V(0)
        found += [late.a, late.step, raised(status.assert_consumed)]
        inner = Net("b")
        C(net=inner).restore(path).expect_partial()
        found.append(inner.b)
        deep = C(other=C(net=Net("a")))
        found.append(raised(deep.restore(path).assert_existing_objects_matched))
        found.append(
            raised(C(net=Net("a")).restore(path).expect_partial().assert_existing_objects_matched)
        )
        return found


@program
def containers_in_checkpoints(tf):
    V, C = tf.Variable, tf.train.Checkpoint

    class Holder(tf.Module):
        pass

    def made(base):
        holder = Holder()
        holder.list = [V(base), V(base + 1.0)]
        holder.dict = {"a": V(base + 2.0), "b": [V(base + 3.0)]}
        holder.tuple = (V(base + 4.0), 3, None)
        holder.text = V("text")
        holder.same = holder.list[0]
        return holder

    with Folder() as root:
        first = made(1.0)
        path = C(holder=first).write(str(root / "one"))
        second = made(0.0)
        second.text.assign("")
        status = C(holder=second).read(path)
        status.assert_consumed()
        found = [second.list, second.dict, second.tuple[0], second.text, second.same]
        shorter = Holder()
        shorter.list = [V(0.0)]
        status = C(holder=shorter).read(path)
        found += [
            shorter.list,
            raised(status.assert_consumed),
            raised(status.assert_existing_objects_matched),
        ]
        shorter.list.append(V(0.0))
        found.append(shorter.list[1])
        found.append(sorted(n for n, _ in tf.train.list_variables(path) if not n.startswith("_")))
        found.append(raised(C, holder=3.0))
        found.append(raised(lambda: C(holder=[object()]).write(str(root / "x"))))
        return found


@program
def saving_and_its_counter(tf):
    V, C = tf.Variable, tf.train.Checkpoint
    with Folder() as root:
        c = C(v=V(1.0))
        found = [
            int(c.save_counter),
            stem(c.save(str(root / "a"))),
            stem(c.save(str(root / "b"))),
            int(c.save_counter),
        ]
        found += [
            stem(tf.train.latest_checkpoint(str(root))),
            stem(tf.train.latest_checkpoint(str(root), "other")),
        ]
        state = tf.train.get_checkpoint_state(str(root))
        found += [
            stem(state.model_checkpoint_path),
            [stem(p) for p in state.all_model_checkpoint_paths],
        ]
        again = C(v=V(0.0))
        again.restore(str(root / "a-1")).assert_consumed()
        found += [again.v, int(again.save_counter), stem(again.save(str(root / "a")))]
        found += [
            raised(c.restore, str(root / "a")),
            raised(c.restore, str(root / "a-9")),
            raised(c.restore, None),
        ]
        status = c.restore(None)
        found += [
            raised(status.assert_consumed),
            raised(status.assert_existing_objects_matched),
            type(status).__name__,
        ]
        found += [
            stem(c.write(str(root / "plain"))),
            int(c.save_counter),
            raised(c.read(str(root / "plain")).assert_consumed),
        ]
        found += [raised(C(v=V(0.0)).restore(str(root / "plain")).assert_consumed)]
        found += [
            tf.train.latest_checkpoint(str(root / "nothing")),
            tf.train.get_checkpoint_state(str(root / "nothing")),
        ]
        found.append(raised(lambda: C(root=V(2.0))))
        return found


@program
def managers_and_their_arguments(tf):
    V, C, M = tf.Variable, tf.train.Checkpoint, tf.train.CheckpointManager

    def files(manager):
        return [stem(p) for p in manager.checkpoints]

    with Folder() as root:
        step = V(0, dtype=tf.int64)
        c = C(step=step, v=V(1.0))
        calls = []
        m = M(
            c,
            str(root / "m"),
            max_to_keep=2,
            checkpoint_name="model",
            step_counter=step,
            checkpoint_interval=2,
            init_fn=lambda: calls.append("init"),
        )
        found = [
            m.latest_checkpoint,
            files(m),
            m.restore_or_initialize(),
            calls,
            m.checkpoint_interval,
        ]
        saved = []
        for _ in range(6):
            step.assign_add(1)
            saved.append(stem(m.save()))
        found += [
            saved,
            files(m),
            stem(m.latest_checkpoint),
            sorted({p.name.split(".")[0] for p in (root / "m").iterdir()}),
        ]
        found += [stem(m.save(check_interval=False)), stem(m.save(checkpoint_number=50)), files(m)]
        other = M(
            C(step=V(0, dtype=tf.int64), v=V(0.0)),
            str(root / "m"),
            max_to_keep=3,
            checkpoint_name="model",
        )
        found += [
            files(other),
            stem(other.restore_or_initialize()),
            other.checkpoint.v,
            int(other.checkpoint.save_counter),
        ]
        found += [
            raised(
                M,
                c,
                str(root),
                max_to_keep=None,
                keep_checkpoint_every_n_hours=None,
                checkpoint_interval=3,
            )
        ]
        found += [raised(M, c, str(root), 0), raised(M, c, str(root), -1)]
        everything = M(c, str(root / "all"), max_to_keep=None)
        for number in range(4):
            everything.save(number)
        found += [
            files(everything),
            sorted({p.name.split(".")[0] for p in (root / "all").iterdir()}),
        ]
        kept = M(c, str(root / "hours"), max_to_keep=1, keep_checkpoint_every_n_hours=0.0)
        for _ in range(3):
            kept.save()
        found += [files(kept), len({p.name.split(".")[0] for p in (root / "hours").iterdir()})]
        found += [
            everything.directory == str(root / "all"),
            stem(m.save(options=tf.train.CheckpointOptions())) is not None,
        ]
        (root / "odd").mkdir()
        found += [M(c, str(root / "odd"), 1).latest_checkpoint]
        return found


@program
def what_is_in_a_file(tf):
    V, C = tf.Variable, tf.train.Checkpoint
    with Folder() as root:
        path = C(a=V([[1.0, 2.0]]), b=V([1, 2, 3], dtype=tf.int64), t=V("x"), d=[V(True)]).save(
            str(root / "c")
        )
        reader = tf.train.load_checkpoint(path)
        names = sorted(n for n in reader.get_variable_to_shape_map() if not n.startswith("_"))
        key = "a/.ATTRIBUTES/VARIABLE_VALUE"
        return [
            names,
            [reader.get_variable_to_shape_map()[n] for n in names],
            [reader.get_variable_to_dtype_map()[n] for n in names],
            reader.has_tensor(key),
            reader.has_tensor("q"),
            reader.get_tensor(key),
            raised(reader.get_tensor, "q"),
            [[n, s] for n, s in tf.train.list_variables(path) if not n.startswith("_")],
            [[n, s] for n, s in tf.train.list_variables(str(root)) if not n.startswith("_")],
            tf.train.load_variable(path, key),
            tf.train.load_variable(str(root), key),
            raised(tf.train.load_variable, path, "q"),
            raised(tf.train.list_variables, str(root / "none")),
            raised(tf.train.load_checkpoint, str(root / "none")),
            tf.train.load_variable(path, "t/.ATTRIBUTES/VARIABLE_VALUE"),
            [stem(p) for p in [next(tf.train.checkpoints_iterator(str(root)))]],
            [
                stem(p)
                for p in tf.train.checkpoints_iterator(str(root), timeout=0.1, min_interval_secs=0)
            ],
            list(tf.train.checkpoints_iterator(str(root / "none"), timeout=0.1)),
        ]


@program
def moving_averages(tf):
    E = tf.train.ExponentialMovingAverage

    def run(**kwargs):
        average, v = E(**kwargs), tf.Variable([1.0, 2.0])
        found = []
        for step in range(3):
            average.apply([v])
            found.append(tf.convert_to_tensor(average.average(v)))
            v.assign_add([1.0, float(step)])
        return found

    average = E(0.9)
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    average.apply([v, w])
    traced = E(0.5)
    x = tf.Variable(4.0)

    @tf.function
    def step():
        x.assign_add(2.0)
        traced.apply([x])
        return tf.convert_to_tensor(traced.average(x))

    return [
        run(decay=0.5),
        run(decay=0.9, num_updates=2),
        run(decay=0.9, num_updates=tf.Variable(50)),
        run(decay=0.9, zero_debias=True),
        average.average(tf.Variable(3.0)),
        average.name,
        E(0.5, name="mine").name,
        outcome(average.apply, []),
        average.average(v),
        [step(), step()],
        raised(E),
        raised(average.apply, [tf.Variable(1)]),
    ]


@program
def iterators_and_generators_in_checkpoints(tf):
    C = tf.train.Checkpoint
    with Folder() as root:
        dataset = tf.data.Dataset.range(20).shuffle(5, seed=2).batch(2)
        iterator, generator = iter(dataset), tf.random.Generator.from_seed(5)
        next(iterator), generator.normal([3])
        path = C(iterator=iterator, generator=generator).save(str(root / "i"))
        expected = [[int(x) for x in b] for b in iterator], generator.normal([3])
        other, fresh = iter(dataset), tf.random.Generator.from_seed(9)
        C(iterator=other, generator=fresh).restore(path).assert_consumed()
        numbers = [[int(x) for x in b] for b in other]
        return [numbers == expected[0], len(numbers), fresh.normal([3]), expected[1]]


@program
def states_of_python_objects(tf):
    class Counter(tf.train.experimental.PythonState):
        def __init__(self):
            self.count = 1

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.count = int(string_value)

    class Broken(Counter):
        def serialize(self):
            return 3

    C = tf.train.Checkpoint
    with Folder() as root:
        counter = Counter()
        c = C(counter=counter, inside=[counter, tf.Variable(1.0)])
        counter.count = 7
        path = c.save(str(root / "p"))
        counter.count = 0
        c.restore(path).assert_consumed()
        other = C(counter=Counter(), inside=[Counter(), tf.Variable(0.0)])
        other.restore(path)
        late = C()
        late.restore(path)
        late.counter = Counter()
        return [
            counter.count,
            other.counter.count,
            late.counter.count,
            raised(tf.train.experimental.PythonState),
            raised(C(counter=Broken()).save, str(root / "b")) != "no error",
            sorted(n for n, _ in tf.train.list_variables(path) if "ATTRIBUTES" in n),
        ]


@program
def views_of_checkpoints_and_programs(tf):
    V, C = tf.Variable, tf.train.Checkpoint

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = V(1.0), V(2.0)
            self.several = [V(3.0), V(4.0)]

    def shown(value):
        return value.numpy() if isinstance(value, V) else type(value).__name__.replace("List", "")

    with Folder() as root:
        net = Net()
        net.leaf = Net()
        net.again = net.leaf
        path = C(net).save(str(root / "ck"))
        view = tf.train.CheckpointView(path)

        def names(number, depth=0):
            found = view.children(number)
            return {n: names(c, depth + 1) if c and depth < 3 else c == 0 for n, c in found.items()}

        other = Net()
        other.leaf = Net()
        other.leaf.c = V(5.0)
        del other.leaf.a
        matched, only_there, only_here = view.diff(other)
        by_names = {view.children(0)[n]: n for n in ("a", "b", "several", "leaf")}
        return [
            names(0), len(view.descendants()), view.descendants()[0],
            sorted(by_names[n] for n in matched if n in by_names), len(matched), len(only_there),
            sorted(float(v) for v in only_here if isinstance(v, V)),
            len(view.match(net)) == len(view.descendants()) - 1,  # the counter is the checkpoint's
            raised(view.match, 3), raised(tf.train.CheckpointView, str(root / "none")),
            list(tf.train.TrackableView.children(net)),
            tf.train.TrackableView(net).root is net,
            sorted(float(v) for v in tf.train.TrackableView(net).descendants() if isinstance(v, V)),
            len(tf.train.TrackableView(net).descendants()),
        ]


@program
def checkpoints_written_in_functions(tf):
    with Folder() as root:
        v, w = tf.Variable(3.0), tf.Variable([1, 2])
        words = tf.Variable(["a", "b"])
        checkpoint = tf.train.Checkpoint(v=v, words=words, inner=[w])
        where = str(root / "ck")

        @tf.function
        def step(name):
            v.assign_add(1.0)
            w.assign_sub([1, 1])
            words.assign(["c", "d"])
            path = checkpoint.write(name)
            v.assign_add(10.0)
            return path

        @tf.function
        def every_other(n):
            for i in tf.range(n):
                v.assign_add(1.0)
                if i % 2 == 0:
                    checkpoint.write(where + "-loop")

        def restored(path):
            found = [tf.train.load_checkpoint(path).get_tensor(n) for n in names]
            checkpoint.read(path).assert_existing_objects_matched()
            return [found, v.numpy(), w.numpy(), words.numpy()]

        names = [f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in ("v", "inner/0", "words")]
        paths = [
            stem(step(where).numpy().decode()),
            stem(step(tf.constant(where)).numpy().decode()),
        ]
        found = [paths, v.numpy(), restored(where)]
        every_other(4)
        return [
            *found, v.numpy(), restored(where + "-loop"),
            raised(tf.function(lambda: checkpoint.save(where))),
        ]  # fmt: skip
