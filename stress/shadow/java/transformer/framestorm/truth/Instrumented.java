package framestorm.truth;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * One method with its push, its pops and a handler of all exceptions. What enter() returned is in a
 * local behind the method's own.
 *
 * <p>A constructor pushes once super() or this() has returned: before, nothing can catch what these
 * throw. The bytecode index of the push says which frames are not on the shadow stack yet.
 */
final class Instrumented extends MethodVisitor {
  private static final String SHADOW = "framestorm/truth/Shadow";

  private final int number;
  private final int token;
  private final boolean isConstructor, hasFrames;
  private final Label begin = new Label(), handler = new Label();
  private final Set<Label> handlers = new HashSet<>();
  private final List<Label> calls = new ArrayList<>();
  private final List<String> names = new ArrayList<>();
  private boolean pushed, caught;
  private int made; // objects that have yet to be initialised
  private final Label push = new Label();

  Instrumented(
      MethodVisitor inner, int number, boolean isConstructor, int locals, boolean hasFrames) {
    super(Opcodes.ASM9, inner);
    this.number = number;
    this.token = locals;
    this.isConstructor = isConstructor;
    this.hasFrames = hasFrames;
  }

  int number() {
    return number;
  }

  /** Where it pushes itself. Once the class is written, as the next two. */
  int push() {
    return pushed ? push.getOffset() : Integer.MAX_VALUE;
  }

  int[] indices() {
    return calls.stream().mapToInt(Label::getOffset).toArray();
  }

  String[] callees() {
    return names.toArray(String[]::new);
  }

  @Override
  public void visitCode() {
    super.visitCode();
    if (!isConstructor) enter();
  }

  private void enter() {
    super.visitLdcInsn(number);
    super.visitLabel(push);
    super.visitMethodInsn(Opcodes.INVOKESTATIC, SHADOW, "enter", "(I)I", false);
    super.visitVarInsn(Opcodes.ISTORE, token);
    super.visitLabel(begin);
    pushed = true;
  }

  private void tell(String method) {
    super.visitVarInsn(Opcodes.ILOAD, token);
    super.visitMethodInsn(Opcodes.INVOKESTATIC, SHADOW, method, "(I)V", false);
  }

  private void call(String name) {
    Label at = new Label();
    super.visitLabel(at);
    calls.add(at);
    names.add(name);
  }

  @Override
  public void visitTryCatchBlock(Label start, Label end, Label target, String type) {
    handlers.add(target);
    super.visitTryCatchBlock(start, end, target, type);
  }

  @Override
  public void visitLabel(Label label) {
    super.visitLabel(label);
    caught = pushed && handlers.contains(label);
    if (caught && !hasFrames) resume();
  }

  @Override
  public void visitFrame(int type, int locals, Object[] local, int stack, Object[] stacked) {
    if (!pushed) {
      super.visitFrame(type, locals, local, stack, stacked);
      return;
    }
    List<Object> all = new ArrayList<>(Arrays.asList(local).subList(0, locals));
    int size = 0;
    for (Object one : all) size += one == Opcodes.LONG || one == Opcodes.DOUBLE ? 2 : 1;
    all.addAll(Collections.nCopies(token - size, Opcodes.TOP));
    all.add(Opcodes.INTEGER);
    super.visitFrame(type, all.size(), all.toArray(), stack, stacked);
    if (caught) resume();
  }

  // What this frame's callees had pushed is gone.
  private void resume() {
    caught = false;
    tell("caught");
  }

  @Override
  public void visitTypeInsn(int opcode, String type) {
    if (opcode == Opcodes.NEW) ++made;
    super.visitTypeInsn(opcode, type);
  }

  @Override
  public void visitMethodInsn(
      int opcode, String owner, String name, String type, boolean ofInterface) {
    boolean isSpecial =
        owner.equals("java/lang/invoke/MethodHandle") || owner.equals("java/lang/invoke/VarHandle");
    call(isSpecial ? null : name);
    super.visitMethodInsn(opcode, owner, name, type, ofInterface);
    if (!name.equals("<init>")) return;
    if (made > 0) {
      --made;
    } else if (isConstructor && !pushed) {
      enter();
    }
  }

  @Override
  public void visitInvokeDynamicInsn(
      String name, String type, Handle bootstrap, Object... arguments) {
    call(null);
    super.visitInvokeDynamicInsn(name, type, bootstrap, arguments);
  }

  @Override
  public void visitInsn(int opcode) {
    if (pushed && opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) tell("exit");
    super.visitInsn(opcode);
  }

  @Override
  public void visitMaxs(int stack, int locals) {
    if (pushed) {
      super.visitTryCatchBlock(begin, handler, handler, null);
      super.visitLabel(handler);
      if (hasFrames) {
        Object[] local = new Object[token + 1];
        Arrays.fill(local, Opcodes.TOP);
        local[token] = Opcodes.INTEGER;
        super.visitFrame(
            Opcodes.F_NEW, local.length, local, 1, new Object[] {"java/lang/Throwable"});
      }
      tell("exit");
      super.visitInsn(Opcodes.ATHROW);
    }
    super.visitMaxs(stack, locals);
  }
}
